package orphans

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// apiTimeout bounds each request to the API server: one that hangs must not block everything.
const apiTimeout = 30 * time.Second

// settle is how long launches may wait for the record after the start of the process.
const settle = 10 * time.Second

// ErrRecordChanged means that the record was not as this process had written it: another process writes it, or a backup was restored. The
// scan concludes nothing, and what was launched since the latest scan of the record found is not covered.
var ErrRecordChanged = errors.New("the record of the installation has been changed by another process or the restore of a backup")

// Store keeps the Record in a ConfigMap, and gives out the marks of launches. It is safe for concurrent use.
type Store struct {
	client client.Client
	reader client.Reader
	clock  clock.PassiveClock
	key    types.NamespacedName

	mu sync.Mutex
	// started is when Begin was first called; tried is true once it has ended.
	started time.Time
	tried   bool
	// record is as this process has written it last; written is its text, with which it is recognized, and attempted that of a write
	// whose answer was lost.
	record    Record
	written   string
	attempted string
	// err is why there is no record; nil if there is one.
	err error
	// scopes are those for which marks were given out.
	scopes map[driver.Scope]bool
}

// NewStore returns a Store on the ConfigMap of that name. reader reads from the API server itself.
func NewStore(c client.Client, reader client.Reader, clk clock.PassiveClock, key types.NamespacedName) *Store {
	return &Store{
		client: c, reader: reader, clock: clk, key: key,
		err: errors.New("the record of the installation has not been read yet"), scopes: map[driver.Scope]bool{},
	}
}

// Begin reads the record and adds the start of this process. Each leader calls it once, and again until it succeeds.
func (s *Store) Begin(ctx context.Context) error {
	s.mu.Lock()
	if s.started.IsZero() {
		s.started = s.clock.Now()
	}
	s.mu.Unlock()
	found, err := s.read(ctx)
	if err == nil {
		err = s.begin(ctx, found)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = true
	if err != nil {
		s.err = err
	}
	return err
}

// Settling returns for how long launches should wait for the record, since one without a mark would have to be marked later. Zero once
// the record has been read or could not be, and some seconds after the start of the process at the latest.
func (s *Store) Settling() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || s.tried {
		return 0
	}
	if s.started.IsZero() {
		return settle
	}
	return max(0, s.started.Add(settle).Sub(s.clock.Now()))
}

// Mark returns the mark of what is launched for an object of that Cluster. It fails while there is no record.
func (s *Store) Mark(cluster types.UID, scope driver.Scope) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return "", s.err
	}
	// Never before the latest scan, wherever the clock has been set to: that scan says nothing of what is marked from now on.
	at := max(s.clock.Now().Unix(), s.record.latest())
	lineage := driver.Lineage{Cluster: cluster, Installation: s.record.Installation, At: time.Unix(at, 0)}.String()
	if _, ok := driver.ParseLineage(lineage); !ok {
		return "", errors.Errorf("the UID %q of the Cluster cannot be part of a mark", cluster)
	}
	s.scopes[scope] = true
	return lineage, nil
}

// Scopes are those in which there may be something of ours.
func (s *Store) Scopes() []driver.Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]driver.Scope, 0, len(s.record.Scopes)+len(s.scopes))
	known := map[driver.Scope]bool{}
	for _, k := range s.record.Scopes {
		all, known[k.scope()] = append(all, k.scope()), true
	}
	for scope := range s.scopes {
		if !known[scope] {
			all = append(all, scope)
		}
	}
	return all
}

// Checkpoint records a scan that began at that time and has read the API server since. examine adds what the scan has found; it may be nil.
// It fails with ErrRecordChanged if the record is not as this process has written it.
func (s *Store) Checkpoint(ctx context.Context, began time.Time, scopes []driver.Scope, examine func(Record) Record) (Record, error) {
	found, err := s.read(ctx)
	if err != nil {
		return Record{}, err
	}
	s.mu.Lock()
	text := found.Data[recordKey]
	same := s.err == nil && text != "" && (text == s.written || text == s.attempted)
	next := s.record.scanned(began).saw(scopes, s.clock.Now())
	s.mu.Unlock()
	if !same {
		if err := s.begin(ctx, found); err != nil {
			return Record{}, err
		}
		return Record{}, ErrRecordChanged
	}
	if examine != nil {
		next = examine(next)
	}
	return next, s.write(ctx, found, next)
}

// read reads the ConfigMap from the API server itself; it has no resourceVersion if there is none.
func (s *Store) read(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	found := &corev1.ConfigMap{}
	err := s.reader.Get(ctx, s.key, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}, nil
	}
	return found, errors.Wrapf(err, "reading ConfigMap %s", s.key)
}

// begin adds the start of a process to the record that was found.
func (s *Store) begin(ctx context.Context, found *corev1.ConfigMap) error {
	record, err := decodeRecord(found.Data[recordKey])
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "The record of the installation cannot be read and is created again", "configMap", s.key)
		record = Record{}
	}
	s.mu.Lock()
	s.err = errors.New("the record of the installation has not been written yet")
	s.mu.Unlock()
	err = s.write(ctx, found, record.started(s.clock.Now()))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

// write persists the record in place of the one that was found.
func (s *Store) write(ctx context.Context, found *corev1.ConfigMap, record Record) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	text, err := record.encode()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.attempted = text
	s.mu.Unlock()
	next := found.DeepCopy()
	next.Data = map[string]string{recordKey: text}
	if found.ResourceVersion == "" {
		err = s.client.Create(ctx, next)
	} else {
		err = s.client.Update(ctx, next)
	}
	if err != nil {
		return errors.Wrapf(err, "writing ConfigMap %s", s.key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record, s.written = record, text
	return nil
}
