package doccheck

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fragment is the word after "yaml" at the head of a fenced block that shows a part of an object.
const Fragment = "fragment"

// Examples gives the objects in the fenced blocks of yaml below a heading, of the whole page for "". Blocks with
// the word Fragment are left out; all others must hold whole objects. It fails the test when there is no object.
func (p *Page) Examples(t testing.TB, heading string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, block := range p.blocks(t, heading, "yaml") {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(block), len(block)+1)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if err == io.EOF { //nolint:errorlint // the decoder returns it as it is
				break
			}
			if err != nil {
				t.Fatalf("%s: this is no YAML: %v\n%s", p.Path, err, block)
			}
			if len(object.Object) == 0 {
				continue
			}
			if object.GetAPIVersion() == "" || object.GetKind() == "" {
				t.Fatalf("%s: no whole object; say ```yaml %s if that is meant:\n%s", p.Path, Fragment, block)
			}
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		t.Fatalf("%s has no example below %q", p.Path, heading)
	}
	return objects
}

// Apply creates the objects in a namespace that exists, whatever namespace they name, with strict validation: an
// unknown field is an error. With client.DryRunAll nothing is stored.
func Apply(t testing.TB, c client.Client, namespace string, objects []*unstructured.Unstructured, options ...client.CreateOption) {
	t.Helper()
	options = append([]client.CreateOption{client.FieldValidation(metav1.FieldValidationStrict)}, options...)
	for _, object := range objects {
		namespaced, err := c.IsObjectNamespaced(object)
		if err != nil {
			t.Errorf("The example %s %s is of no kind that the API server has: %v", object.GetKind(), object.GetName(), err)
			continue
		}
		if namespaced {
			object.SetNamespace(namespace)
		}
		if err := c.Create(t.Context(), object, options...); err != nil {
			t.Errorf("The API server refuses the example %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// Objects are the fenced blocks of yaml that are no fragments, of the whole page, as they are written; none for a page without.
func (p *Page) Objects(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, block := range p.blocks(t, "", "yaml") {
		found = append(found, string(block))
	}
	return found
}

// Fragments are the fenced blocks of yaml below a heading that show a part of something.
func (p *Page) Fragments(t testing.TB, heading string) []string {
	t.Helper()
	var found []string
	for _, block := range p.fenced(t, heading, "yaml", true) {
		found = append(found, string(block))
	}
	return found
}

// blocks are the fenced blocks of a language that are not fragments.
func (p *Page) blocks(t testing.TB, heading, language string) [][]byte {
	t.Helper()
	return p.fenced(t, heading, language, false)
}

// fenced are the blocks of a language that are fragments, or are not.
func (p *Page) fenced(t testing.TB, heading, language string, fragments bool) [][]byte {
	t.Helper()
	var found [][]byte
	for _, node := range p.section(t, heading) {
		p.walk(node, func(inner ast.Node) {
			block, ok := inner.(*ast.FencedCodeBlock)
			if !ok || block.Info == nil {
				return
			}
			info := strings.Fields(string(block.Info.Segment.Value(p.source)))
			if len(info) == 0 || info[0] != language || (len(info) > 1 && info[1] == Fragment) != fragments {
				return
			}
			found = append(found, block.Lines().Value(p.source))
		})
	}
	return found
}

// Commands are the fenced blocks of sh below a heading, of the whole page for "", joined: what a user types. Blocks with
// the word Fragment are left out. It fails the test when there is none.
func (p *Page) Commands(t testing.TB, heading string) string {
	t.Helper()
	blocks := p.blocks(t, heading, "sh")
	if len(blocks) == 0 {
		t.Fatalf("%s has no commands below %q", p.Path, heading)
	}
	return string(bytes.Join(blocks, nil))
}

// Code are the fenced blocks of Go below a heading, of the whole page for "". It fails the test when there is none.
func (p *Page) Code(t testing.TB, heading string) []string {
	t.Helper()
	var code []string
	for _, block := range p.blocks(t, heading, "go") {
		code = append(code, string(block))
	}
	if len(code) == 0 {
		t.Fatalf("%s has no code below %q", p.Path, heading)
	}
	return code
}
