package external

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changed does what the event of a definition does.
func (i *Informers) Changed(ctx context.Context, crd string) { i.changed(ctx, crd) }

// Openings is how many definitions are being examined.
func (i *Informers) Openings() int {
	i.mutex.RLock()
	defer i.mutex.RUnlock()
	return len(i.openings)
}

// ServedBy are the versions that a definition serves.
func ServedBy(crd *unstructured.Unstructured) []string { return servedBy(crd) }

// MinReopen is the pause after the first attempt to examine a definition that failed.
const MinReopen = minReopen
