// Package standin is a provider without infrastructure: kinds in the group standin.conformance.millwright.dev that keep the contract, with
// controllers that keep every rule that the suite verifies by behaviour, except those that they are configured to break. They show that
// the suite can pass, and that it can fail. The suite for cores uses the kinds alone.
package standin
