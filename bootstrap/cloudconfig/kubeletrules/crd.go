package kubeletrules

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Apply puts the rules into the schema of spec.kubelet, which code generation has made from the Go types.
func Apply(kubelet *apiextensionsv1.JSONSchemaProps) {
	kubelet.Properties["config"] = Schema(kubelet.Properties["config"].Description)
	args := kubelet.Properties["extraArgs"]
	args.Items.Schema.XValidations = nil
	for _, r := range flagRules() {
		args.Items.Schema.XValidations = append(args.Items.Schema.XValidations, apiextensionsv1.ValidationRule{
			Rule: r.rule, Message: r.message,
		})
	}
	kubelet.Properties["extraArgs"] = args
	kubelet.XValidations = nil
	for _, flag := range slices.Sorted(maps.Keys(shadowedFields)) {
		field := shadowedFields[flag]
		kubelet.XValidations = append(kubelet.XValidations, apiextensionsv1.ValidationRule{
			Rule: fmt.Sprintf("!has(self.extraArgs) || !has(self.config) || !has(self.config.logging) || !has(self.config.logging.%s) || "+
				"%s || !self.extraArgs.exists(a, a.name == '%s')", field, unset(field), flag),
			Message: fmt.Sprintf("--%s would win over config.logging.%s: give one of them", flag, field),
		})
	}
}

// unset returns the expression that a field of logging has the value that a kubelet reads as unset.
func unset(field string) string {
	if field == "vmodule" {
		return "size(self.config.logging.vmodule) == 0"
	}
	return "self.config.logging." + field + " == 0"
}
