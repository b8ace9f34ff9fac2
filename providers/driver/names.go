package driver

import (
	"crypto/sha256"
	"fmt"
	"strings"

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

// OwnerDigest is an owner's name for clouds whose labels take no slash or are short: 40 hexadecimal digits of its SHA-256 after
// the letter o. It marks an instance as well as the name does.
func OwnerDigest(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return fmt.Sprintf("o%x", sum[:20])
}

// nameDigits is how many hexadecimal digits of its hash replace what a name loses.
const nameDigits = 10

// Name is the name of the instance of a Machine where the cloud finds instances by names, and where a cloud-controller-manager
// finds the Node of an instance by it: the Machine's own, if it is a DNS label of at most limit characters that begins with a
// letter. Else other characters become -, a name that does not begin with a letter gets m- in front, and the end is replaced by
// - and ten hexadecimal digits of the SHA-256 of the Machine's name, such that the whole has at most limit characters.
func Name(machine string, limit int) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, machine)
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		name = "m-" + name
	}
	if name == machine && len(name) <= limit && !strings.HasSuffix(name, "-") {
		return name
	}
	sum := sha256.Sum256([]byte(machine))
	suffix := fmt.Sprintf("-%x", sum[:nameDigits/2])
	return strings.TrimRight(name[:min(len(name), limit-len(suffix))], "-") + suffix
}

// Token is the token of the launch of an object, at most 64 characters: owner is its namespace/name, uid the one that it had at its first
// launch. Anyone who forges the launch record of another object does not get that object's token, with which the cloud would refuse it its
// launch or give it an instance of another owner. Empty without a UID.
func Token(owner string, uid types.UID, attempt int) string {
	if uid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(owner + " " + string(uid)))
	return fmt.Sprintf("mw-%x-%d", sum[:20], attempt)
}

// LaunchRequestID is the request ID of the launch with the token: Launch.RequestID.
func LaunchRequestID(token string) string { return RequestID(token, "create") }

// RequestID is a token as a UUID of version 8 (RFC 9562): the same for the same token and purpose.
func RequestID(token, purpose string) string {
	sum := sha256.Sum256([]byte(purpose + " " + token))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
