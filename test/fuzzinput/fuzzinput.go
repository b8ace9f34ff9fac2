// Package fuzzinput turns the bytes of a fuzzer into decisions, so that a fuzz test can build whole objects of few
// interesting values. A byte is one decision; when all are used up, each decision is the first option.
package fuzzinput

// Choices makes decisions.
type Choices struct{ rest []byte }

// From makes decisions from the bytes.
func From(data []byte) *Choices { return &Choices{data} }

// Below returns a number from 0 to n-1.
func (c *Choices) Below(n int) int {
	if len(c.rest) == 0 || n < 2 {
		return 0
	}
	chosen := int(c.rest[0]) % n
	c.rest = c.rest[1:]
	return chosen
}

// Yes decides between yes and no.
func (c *Choices) Yes() bool { return c.Below(2) == 1 }

// Of returns one of the options.
func Of[T any](c *Choices, options ...T) T { return options[c.Below(len(options))] }

// Some returns a map with some of the keys, each with one of the values.
func Some(c *Choices, keys, values []string) map[string]string {
	chosen := map[string]string{}
	for _, key := range keys {
		if c.Yes() {
			chosen[key] = Of(c, values...)
		}
	}
	return chosen
}
