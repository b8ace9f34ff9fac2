package behaviour

import "millwright.dev/contracts/conformance"

// BootstrapConfigCases are the cases for a bootstrap config and its template.
func BootstrapConfigCases() []conformance.Case[*Env] { return nil }
