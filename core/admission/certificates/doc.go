// Package certificates makes, renews and publishes the certificate of the core's webhook server, so that nothing else
// is needed to have webhooks.
//
// One Secret holds the serving certificate and what signs it. Every replica reads it (holder.go); the leader alone
// renews it and writes the trusted authorities into the objects by which API servers find the webhooks (keeper.go).
// What is to be done when is a pure function (plan.go): a new authority is trusted everywhere before anything that it
// signed is served, so no request fails while certificates change.
//
// github.com/open-policy-agent/cert-controller issues and checks the certificates; docs/dependencies.md has the reasons why it
// does no more.
package certificates
