package driver

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestLineage(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	l := Lineage{Cluster: "0b0e1a52-8a41-4d0c-9c31-6a8ad1b6fbd0", Installation: "k3v9x2m4p7q1", At: at}
	text := l.String()
	g.Expect(len(text)).To(BeNumerically("<=", 63), "what GCP takes as the value of a label")
	g.Expect(regexp.MustCompile(`^[a-z0-9_-]+$`).MatchString(text)).To(BeTrue(), "likewise")
	parsed, ok := ParseLineage(text)
	g.Expect(ok).To(BeTrue())
	g.Expect(parsed).To(Equal(l))
}

// What is no lineage belongs to no installation here, and must not get into requests.
func TestTextsThatAreNoLineage(t *testing.T) {
	for _, text := range []string{
		"", "u", "u_e", "u_e_", "_e_1", "u__1", "U_e_1", "u_e_1_2", "u_*_1", "u_e_?", "u/../v_e_1", "u_e_1\n", " u_e_1", "u_e_zzzzzzzz",
		"u_eeeeeeeeeeeeeee_1", "u.e.1",
	} {
		l, ok := ParseLineage(text)
		NewWithT(t).Expect(ok).To(BeFalse(), text)
		NewWithT(t).Expect(l.Cluster).To(Equal(types.UID("")))
	}
}
