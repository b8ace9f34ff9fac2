package instance

import (
	"context"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// imageID is the form of the ID of an AMI.
var imageID = regexp.MustCompile(`^ami-[0-9a-f]+$`)

// parameterImage returns the ID that a parameter of Systems Manager holds. It may hold another one later, so it is kept no longer
// than a search.
func (r *region) parameterImage(ctx context.Context, name string) (string, error) {
	found, err := r.images.get(ctx, "parameter "+name, false, func(ctx context.Context) (image, error) {
		out, err := r.api.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
		if err != nil {
			return image{}, r.unresolved(parameterError(name, err))
		}
		value := ""
		if out.Parameter != nil {
			value = strings.TrimSpace(aws.ToString(out.Parameter.Value))
		}
		if !imageID.MatchString(value) {
			return image{}, r.unresolved(driver.NewUnresolvedError("GetParameter", "", notAnImage(name)))
		}
		return image{id: value}, nil
	})
	return found.id, err
}

// parameterError classifies an error. Systems Manager sends no message with a parameter that does not exist.
func parameterError(name string, err error) error {
	switch code, _ := codeOf(err); code {
	case "ParameterNotFound":
		return driver.NewUnresolvedError("GetParameter", code, errors.Errorf("there is no parameter %s", name))
	case "ParameterVersionNotFound":
		return driver.NewUnresolvedError("GetParameter", code, errors.Errorf("there is no such version or label: %s", name))
	}
	return classify("GetParameter", err)
}

// notAnImage does not show the value: anyone who writes AWSMachines could read all parameters that the provider can.
func notAnImage(name string) error {
	return errors.Errorf("the parameter %s does not hold the ID of an AMI and nothing else: name one that does, "+
		"such as …/image_id of the public ones, whose type is not SecureString", name)
}
