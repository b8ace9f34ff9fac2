package node

import (
	"testing"

	"millwright.dev/test/doccheck"
)

// What an image must have stands on the pages that people make images by.
func TestThePagesNameEachProgram(t *testing.T) {
	guide := doccheck.Read(t, "docs/guides/aws.md")
	doccheck.Compare(t, guide, "programs", guide.Keys(t, "The image", "Programs"), Programs)
	readme := doccheck.Read(t, "bootstrap/cloudconfig/node/README.md")
	doccheck.Compare(t, readme, "programs", readme.Keys(t, "What runs on the machine", "Programs that they run"), Programs)
}
