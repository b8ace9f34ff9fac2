package instance

import (
	_ "embed" // The stub's program is a file.
	"path"
	"strings"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// fetchProgram is what an instance runs when it boots, to fetch its user data.
//
//go:embed fetch-user-data.sh
var fetchProgram string

// userDataDirectory is where on the instance the user data are written, with a name that follows from the secret's.
const userDataDirectory = "/var/lib/millwright/"

// userData is what the instance is given as its user data: of an instance whose user data are in Secrets Manager, what fetches them.
func userData(launch driver.Launch[*infrav1.AWSMachine]) []byte {
	if !(*Driver)(nil).StoresUserData(launch.Object) {
		return launch.UserData
	}
	return stub(launch.Object.Spec.Region, secretID(launch.Owner, launch.OwnerUID))
}

// stub is a program and, by reference, what that fetches. It holds no secret, and does not depend on the user data, so that a launch
// which is repeated with renewed data is the same request.
//
// cloud-init reads what is referred to before it runs the program, and continues without it where the image says so
// (docs/guides/aws.md); the program has cloud-init start again. A machine that boots again has the file already.
func stub(region, id string) []byte {
	file := userDataDirectory + "user-data-" + path.Base(id)
	program := strings.NewReplacer("@REGION@", region, "@SECRET@", id, "@FILE@", file).Replace(fetchProgram)
	return []byte(`MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="millwright-user-data"

--millwright-user-data
Content-Type: text/cloud-boothook; charset="us-ascii"

` + program + `
--millwright-user-data
Content-Type: text/x-include-url; charset="us-ascii"

file://` + file + `

--millwright-user-data--
`)
}
