// Package standin is a provider of nothing: kinds in the group standin.conformance.millwright.dev that keep the contract, with
// controllers that keep every rule that the suite verifies by their behaviour, but for those that they are told to break. They show that
// the suite can pass, and that it can fail; cores are watched with the kinds alone.
package standin
