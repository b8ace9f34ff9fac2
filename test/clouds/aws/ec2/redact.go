package ec2

import (
	"encoding/base64"
	"strconv"

	"millwright.dev/test/clouds/aws/simapi"
)

// redact leaves out the user data, which hold credentials, and what is the same in each call.
func redact(p params) map[string]string {
	out := map[string]string{}
	for k, v := range p {
		switch k {
		case "Action", "Version":
		case "UserData":
			raw, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				raw = []byte(v)
			}
			out["UserData.Size"] = strconv.Itoa(len(raw))
			out["UserData.SHA256"] = digest(raw)
		default:
			out[k] = v
		}
	}
	return out
}

// injected is the error answer of a fault.
func injected(e *simapi.APIError) *apiError {
	out := fail(e.Code, "%s", e.Message)
	if e.Message == "" {
		out.message = "Injected by a test."
	}
	if e.Status != 0 {
		out.status = e.Status
	}
	return out
}
