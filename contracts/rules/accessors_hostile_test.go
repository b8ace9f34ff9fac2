package rules_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/field"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
)

// accessors are all of them, for each version of the contract.
func accessors() map[string]any {
	all := map[string]any{"template": inframachine.TemplateAccessor{}}
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2, "v1alpha3"} {
		all["inframachine "+string(contract)] = inframachine.At(contract)
		all["bootstrapconfig "+string(contract)] = bootstrapconfig.At(contract)
		all["infracluster "+string(contract)] = infracluster.At(contract)
		all["controlplane "+string(contract)] = controlplane.At(contract)
	}
	return all
}

// fields are those that any accessor reads, with entries of lists and maps.
var fields = []string{
	"spec", "spec.providerID", "spec.failureDomain", "spec.controlPlaneEndpoint", "spec.controlPlaneEndpoint.host",
	"spec.controlPlaneEndpoint.port", "spec.replicas", "spec.version", "status", "status.ready", "status.initialized",
	"status.initialization", "status.initialization.provisioned", "status.initialization.dataSecretCreated",
	"status.initialization.controlPlaneInitialized", "status.addresses", "status.addresses.0", "status.addresses.0.type",
	"status.addresses.0.address", "status.failureDomain", "status.failureDomains", "status.failureDomains.0", "status.failureDomains.a",
	"status.failureDomains.a.controlPlane", "status.failureDomains.a.attributes", "status.failureDomains.a.attributes.b",
	"status.failureDomains.0.name", "status.failureDomains.0.controlPlane", "status.failureDomains.0.attributes",
	"status.failureDomains.0.attributes.b", "status.interruptible", "status.dataSecretName", "status.nodeName", "status.failureReason",
	"status.failureMessage", "status.externalManagedControlPlane", "status.replicas", "status.readyReplicas", "status.availableReplicas",
	"status.upToDateReplicas", "status.updatedReplicas", "status.unavailableReplicas", "status.version", "status.versions",
	"status.versions.0", "status.versions.0.version", "status.versions.0.replicas", "status.conditions", "status.conditions.0",
	"status.conditions.0.type", "status.conditions.0.status", "status.conditions.0.reason", "status.v1beta2",
	"status.v1beta2.conditions", "status.capacity", "status.capacity.cpu", "status.nodeInfo", "status.nodeInfo.architecture",
	"status.nodeInfo.operatingSystem", "metadata", "kind",
}

// hostile are values of every type that JSON and Go know.
var hostile = []any{
	true, "text", "", int64(-1), int64(1) << 40, 1, int32(1), 1.5, 2.0, []any{}, []any{nil}, []any{[]any{}}, []any{"text"},
	[]any{map[string]any{"type": "Ready", "name": int64(1), "version": true}}, map[string]any{}, map[string]any{"a": nil},
	map[string]any{"a": "text"}, map[string]any(nil), []any(nil), []string{"text"}, map[string]string{"a": "text"}, struct{}{},
}

// objectWith is an object with a value at a field; "0" is the first entry of a list, "Ready" a name that is looked for.
func objectWith(path string, value any) *unstructured.Unstructured {
	parts := strings.Split(path, ".")
	for i := len(parts) - 1; i > 0; i-- {
		switch {
		case parts[i] == "0":
			value = []any{value}
		case parts[i-1] == "0" && parts[i] != "type":
			value = map[string]any{"type": "Ready", "name": "a", "version": "v1.36.3", parts[i]: value}
		default:
			value = map[string]any{parts[i]: value}
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{parts[0]: value}}
}

// read calls all readers of an accessor, and returns what each says.
func read(accessor any, obj *unstructured.Unstructured) map[string][]any {
	said := map[string][]any{}
	of := reflect.ValueOf(accessor)
	for i := range of.NumMethod() {
		method, arguments := of.Method(i), []reflect.Value{reflect.ValueOf(obj)}
		switch method.Type().NumIn() {
		case 0:
			continue
		case 2:
			arguments = append(arguments, reflect.ValueOf("Ready"))
		}
		for _, result := range method.Call(arguments) {
			name := of.Type().Method(i).Name
			said[name] = append(said[name], result.Interface())
		}
	}
	return said
}

// TestAccessorsNeverPanic: whatever a provider writes, wherever, is a value or an error.
func TestAccessorsNeverPanic(t *testing.T) {
	for name, accessor := range accessors() {
		for _, path := range fields {
			for _, value := range hostile {
				func() {
					defer func() {
						if reason := recover(); reason != nil {
							t.Errorf("%s: %s as %T %v: %v", name, path, value, value, reason)
						}
					}()
					read(accessor, objectWith(path, value))
				}()
			}
		}
	}
}

// TestAccessorsTakeNullForAbsent: an object without content and a null at any field say what an object without the field says.
func TestAccessorsTakeNullForAbsent(t *testing.T) {
	for name, accessor := range accessors() {
		absent := read(accessor, &unstructured.Unstructured{Object: map[string]any{}})
		objects := map[string]*unstructured.Unstructured{"no content": {}, "no object": nil}
		for _, path := range fields {
			if !strings.Contains(path, ".0") {
				objects[path] = objectWith(path, nil)
			}
		}
		for what, object := range objects {
			for reader, got := range read(accessor, object) {
				if strings.HasPrefix(what, "status.failureDomains.a") && reader == "FailureDomains" {
					continue // The name of a domain is one, also without anything in it.
				}
				if want := absent[reader]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s.%s: %s: %v, want %v", name, reader, what, got, want)
				}
			}
		}
	}
}

// TestErrorsOfEntriesNameObjectAndPath: what is wrong in an entry of a list is found in the object.
func TestErrorsOfEntriesNameObjectAndPath(t *testing.T) {
	for path, want := range map[string]string{
		"status.failureDomains.0.controlPlane": "status.failureDomains[0].controlPlane must be a boolean, not a list",
		"status.failureDomains.0.attributes":   "status.failureDomains[0].attributes must be an object, not a list",
		"status.versions.0.replicas":           "status.versions[0].replicas must be an integer, not a list",
		"status.capacity":                      "status.capacity must be an object, not a list",
		"status.capacity.cpu":                  "status.capacity.cpu must be a quantity, not a list",
	} {
		obj := objectWith(path, []any{})
		obj.SetKind("Thing")
		obj.SetNamespace("ns")
		obj.SetName("one")
		var errs []string
		for _, accessor := range accessors() {
			for _, said := range read(accessor, obj) {
				if err, is := said[len(said)-1].(error); is && err != nil {
					errs = append(errs, err.Error())
				}
			}
		}
		NewWithT(t).Expect(errs).To(ContainElement("Thing ns/one: "+want), path)
	}
}

// TestWholeNumbersOfAnyDecoder: one that knows no integers makes floats of them, and a quantity may be written as a number.
func TestWholeNumbersOfAnyDecoder(t *testing.T) {
	g := NewWithT(t)
	for _, three := range []any{int64(3), 3, int32(3), 3.0} {
		replicas, err := controlplane.At(version.V1Beta2).Replicas(objectWith("spec.replicas", three))
		g.Expect(err).NotTo(HaveOccurred(), fmt.Sprintf("%T", three))
		g.Expect(*replicas.DesiredReplicas).To(BeEquivalentTo(3))
		capacity, err := inframachine.TemplateAccessor{}.Capacity(objectWith("status.capacity.cpu", three))
		g.Expect(err).NotTo(HaveOccurred(), fmt.Sprintf("%T", three))
		g.Expect(capacity.Cpu().Value()).To(BeEquivalentTo(3))
	}
	for _, wrong := range []any{1.5, 1e300} {
		_, err := field.Path{"status"}.Integer(objectWith("status", wrong))
		g.Expect(err).To(HaveOccurred())
	}
}
