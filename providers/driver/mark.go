package driver

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// maxOwnerName is how many characters an owner's name has at most: what EC2 takes as the value of a tag. All of them are ASCII.
const maxOwnerName = 256

// OwnerName is the name by which instances are marked as an object's: namespace/name. If that has more than 256 characters, it is
// the first of them, a colon and 32 hexadecimal digits of the SHA-256 of the whole. No name of an object has a colon, so no two
// objects have the same.
func OwnerName(key types.NamespacedName) string {
	name := key.String()
	if len(name) <= maxOwnerName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := fmt.Sprintf(":%x", sum[:16])
	return name[:maxOwnerName-len(suffix)] + suffix
}
