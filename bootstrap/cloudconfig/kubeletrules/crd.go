package kubeletrules

import (
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
}
