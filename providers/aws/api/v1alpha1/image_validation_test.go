package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestInvalidImageParameters(t *testing.T) {
	for change, want := range map[string]string{
		`ami: {ssmParameter: ""}`:                                                    "spec.ami.ssmParameter",
		`ami: {ssmParameter: /a//b}`:                                                 "spec.ami.ssmParameter",
		`ami: {ssmParameter: "a b"}`:                                                 "spec.ami.ssmParameter",
		`ami: {ssmParameter: "arn:aws:s3:::bucket/key"}`:                             "spec.ami.ssmParameter",
		`ami: {ssmParameter: a, id: ami-0a1}`:                                        "exactly one of id, ssmParameter and filters",
		`ami: {ssmParameter: a, owners: [self], filters: [{name: a, values: [b]}]}`:  "exactly one of id, ssmParameter and filters",
		`ami: {ssmParameter: a, owners: [self]}`:                                     "owners must be set with filters",
		`ami: {ssmParameter: "arn:aws:ssm:eu-west-1:123456789012:parameter/golden"}`: "spec.ami.ssmParameter: Invalid value: Systems Manager reads a parameter in its own region only",
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestValidImageParameters(t *testing.T) {
	for _, change := range []string{
		`ami: {ssmParameter: golden}`,
		`ami: {ssmParameter: /aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id}`,
		`ami: {ssmParameter: "/golden/node:12"}`,
		`ami: {ssmParameter: "golden:stable"}`,
		`ami: {ssmParameter: "arn:aws:ssm:us-east-1:123456789012:parameter/golden/node"}`,
		`ami: {ssmParameter: "arn:aws:ssm:us-east-1::parameter/aws/service/x"}`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed())
		})
	}
}
