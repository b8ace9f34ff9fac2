// Package stale simulates a stale cache without a clock: a client that lists an earlier state, or a network on which events
// are held back.
package stale

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Lists is a client whose lists of one type can be frozen. Single reads, writes and watches are those of the inner one.
type Lists struct {
	// Indexes are those of the cache that lists are filtered by.
	Indexes map[string]client.IndexerFunc

	mu     sync.Mutex
	of     client.ObjectList
	frozen []client.Object
}

// Freeze has lists of this type show what the reader has now, until Thaw.
func (s *Lists) Freeze(ctx context.Context, reader client.Reader, list client.ObjectList) error {
	if err := reader.List(ctx, list); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.frozen = list, nil
	for _, item := range items {
		s.frozen = append(s.frozen, item.(client.Object))
	}
	return nil
}

// Thaw ends Freeze.
func (s *Lists) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.frozen = nil, nil
}

// Wrap returns a client that shows what is frozen, and otherwise behaves as the inner one.
func (s *Lists) Wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if found, ok := s.look(list, options); ok {
				return meta.SetList(list, found)
			}
			return c.List(ctx, list, options...)
		},
	})
}

func (s *Lists) look(list client.ObjectList, options []client.ListOption) ([]runtime.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || reflect.TypeOf(s.of) != reflect.TypeOf(list) {
		return nil, false
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	var found []runtime.Object
	for _, object := range s.frozen {
		if s.matches(object, asked) {
			found = append(found, object.DeepCopyObject())
		}
	}
	return found, true
}

func (s *Lists) matches(object client.Object, asked *client.ListOptions) bool {
	if asked.Namespace != "" && asked.Namespace != object.GetNamespace() ||
		asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if asked.FieldSelector == nil {
		return true
	}
	for _, wanted := range asked.FieldSelector.Requirements() {
		if index := s.Indexes[wanted.Field]; index == nil || !slices.Contains(index(object), wanted.Value) {
			return false
		}
	}
	return true
}
