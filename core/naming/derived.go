package naming

import (
	"crypto/sha256"
	"encoding/binary"
)

// Letters are those of {{ .random }}, the alphabet of generateName: no vowels, so that no words come about.
const Letters = "bcdfghjklmnpqrstvwxz2456789"

// Derived is a part of a name that looks random and follows from a text, so that every process that knows the text makes the same
// name.
func Derived(text string) string {
	sum := sha256.Sum256([]byte(text))
	number := binary.BigEndian.Uint64(sum[:])
	part := make([]byte, RandomLength)
	for i := range part {
		part[i] = Letters[number%uint64(len(Letters))]
		number /= uint64(len(Letters))
	}
	return string(part)
}
