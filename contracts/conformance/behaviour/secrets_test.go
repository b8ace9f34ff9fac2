package behaviour

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A bootstrap token in the spec is in the annotation of the conversion too, which adds nothing; any other annotation is looked at.
func TestVisible(t *testing.T) {
	g := NewWithT(t)
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"message": "of the status"}}}
	object.SetLabels(map[string]string{"l": "of a label"})
	object.SetAnnotations(map[string]string{conversionData: "copied from the spec", "a": "of an annotation"})
	texts := visible(object)
	g.Expect(texts).To(HaveKeyWithValue("status", ContainSubstring("of the status")))
	g.Expect(texts).To(HaveKeyWithValue("labels", ContainSubstring("of a label")))
	g.Expect(texts).To(HaveKeyWithValue("annotations", And(ContainSubstring("of an annotation"), Not(ContainSubstring("copied")))))
	g.Expect(object.GetAnnotations()).To(HaveLen(2), "the object is left as it is")
}
