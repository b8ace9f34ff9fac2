// Package rights holds no code, but the test that no identity of the install manifests has more rights than are known and accepted.
package rights
