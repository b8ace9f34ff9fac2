package ec2

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// checkModel holds the parameters of RunInstances against the definition of the API, as the SDK has it: each member exists, lists are
// numbered, and numbers, booleans and enumerations have values of their type.
func checkModel(p params) error {
	for name, value := range p {
		switch name {
		case "Action", "Version":
			continue
		}
		if err := checkMember(reflect.TypeFor[sdk.RunInstancesInput](), strings.Split(name, "."), name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkMember follows a path such as BlockDeviceMapping.1.Ebs.VolumeSize.
func checkMember(t reflect.Type, path []string, name, value string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return nil
	case t.Kind() == reflect.Struct && len(path) > 0:
		field, ok := memberOf(t, path[0])
		if !ok {
			return fail("UnknownParameter", "The parameter %s is not recognized", name)
		}
		return checkMember(field.Type, path[1:], name, value)
	case t.Kind() == reflect.Slice && len(path) > 0:
		if n, err := strconv.Atoi(path[0]); err != nil || n < 1 {
			return fail("UnknownParameter", "The parameter %s is not recognized", name)
		}
		return checkMember(t.Elem(), path[1:], name, value)
	case len(path) > 0 || t.Kind() == reflect.Struct || t.Kind() == reflect.Slice:
		return fail("UnknownParameter", "The parameter %s is not recognized", name)
	}
	return checkLeaf(t, name, value)
}

// memberOf finds a member of a structure. In requests lists have the name of one item, and UserData is blob.
func memberOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, candidate := range []string{name, name + "s", strings.TrimSuffix(name, "Id") + "Ids", map[string]string{
		"SecurityGroupId": "Groups", "Ipv6Addresses": "Ipv6Addresses", "ElasticInferenceAccelerator": "ElasticInferenceAccelerators",
	}[name]} {
		field, ok := t.FieldByName(candidate)
		if ok && field.IsExported() && candidate != "" {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

func checkLeaf(t reflect.Type, name, value string) error {
	invalid := func(what string) error { return invalidValue(value, name, "Must be "+what+".") }
	switch t.Kind() {
	case reflect.Int32, reflect.Int64:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return invalid("a number")
		}
	case reflect.Bool:
		if value != "true" && value != "false" {
			return invalid("true or false")
		}
	case reflect.String:
		values := reflect.Zero(t).MethodByName("Values")
		if !values.IsValid() || t.Name() == "InstanceType" { // Types are added more often than the SDK.
			return nil
		}
		known := values.Call(nil)[0]
		for i := range known.Len() {
			if known.Index(i).String() == value {
				return nil
			}
		}
		return invalid("a value of " + t.Name())
	}
	return nil
}
