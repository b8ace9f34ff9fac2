package arm

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
)

// fitsModel refuses a body of a launch that the model of the SDK, which is generated from Azure's API definition, does not have: an unknown
// field, a value of another type.
func fitsModel(body []byte) error {
	var given any
	var model armcompute.VirtualMachine
	if err := json.Unmarshal(body, &model); err != nil {
		return fail(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%v'.", err)
	}
	kept, err := json.Marshal(&model)
	var whole any
	if err != nil || json.Unmarshal(body, &given) != nil || json.Unmarshal(kept, &whole) != nil {
		return fail(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: '%v'.", err)
	}
	if path := lost("", given, whole); path != "" {
		return fail(http.StatusBadRequest, "InvalidRequestContent", "Could not find member '%s' on object of type 'ResourceDefinition'.", path)
	}
	return nil
}

// lost is the path of the first field of given that kept does not have.
func lost(path string, given, kept any) string {
	switch given := given.(type) {
	case map[string]any:
		other, _ := kept.(map[string]any)
		for name, value := range given {
			inner, there := other[name]
			if !there && value != nil {
				return path + "." + name
			}
			if found := lost(path+"."+name, value, inner); found != "" {
				return found
			}
		}
	case []any:
		other, _ := kept.([]any)
		for i, value := range given {
			if i >= len(other) {
				return fmt.Sprintf("%s[%d]", path, i)
			}
			if found := lost(fmt.Sprintf("%s[%d]", path, i), value, other[i]); found != "" {
				return found
			}
		}
	}
	return ""
}
