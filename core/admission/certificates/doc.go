// Package certificates creates, renews and publishes the certificate of the core's webhook server, so that nothing else
// is needed to have webhooks: see its README.
package certificates
