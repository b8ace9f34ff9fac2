package orphans

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"
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

// apiTimeout bounds each request to the API server: one that hangs must not hold up everything for ever.
const apiTimeout = 30 * time.Second

// settle is how long launches may wait for the record after the start of the process.
const settle = 10 * time.Second

// ErrNewEpoch means that a new epoch has begun: the record was not what this process had written. That may be the work of another owner, or
// of a restored backup, so nothing is concluded from what was seen before.
var ErrNewEpoch = errors.New("a new epoch of the record of lineages has begun, since the API server is not in the state in which this process left it")

// Reign keeps the record, and gives out lineages in the name of the present epoch. It is safe for concurrent use.
type Reign struct {
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
	// current is the epoch; empty while there is none, because of err.
	current string
	err     error
	// marked are the objects for which lineages were given out since the latest scan; scopes is where.
	marked map[types.UID]marking
	scopes map[driver.Scope]bool
}

// marking is that a lineage was given out.
type marking struct {
	cluster types.UID
	// at is when, the latest time.
	at int64
}

// NewReign returns a Reign over the ConfigMap of that name. reader reads from the API server itself.
func NewReign(c client.Client, reader client.Reader, clk clock.PassiveClock, key types.NamespacedName) *Reign {
	return &Reign{
		client: c, reader: reader, clock: clk, key: key,
		err: errors.New("the record of lineages has not been read yet"), marked: map[types.UID]marking{}, scopes: map[driver.Scope]bool{},
	}
}

// Begin begins an epoch. It is called once by each leader, and again until it succeeds.
func (r *Reign) Begin(ctx context.Context) error {
	r.mu.Lock()
	if r.started.IsZero() {
		r.started = r.clock.Now()
	}
	r.mu.Unlock()
	found, err := r.read(ctx)
	if err == nil {
		err = r.begin(ctx, found)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = true
	if err != nil {
		r.err = err
	}
	return err
}

// Settling returns for how long launches should wait for the record, since one without a lineage would have to be marked later. Zero once
// the record has been read or could not be, and some seconds after the start of the process at the latest.
func (r *Reign) Settling() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != "" || r.tried {
		return 0
	}
	if r.started.IsZero() {
		return settle
	}
	return max(0, r.started.Add(settle).Sub(r.clock.Now()))
}

// Mark returns the lineage of what belongs to that Cluster and that object, which this process has read from the API server. It fails
// while there is no epoch.
func (r *Reign) Mark(cluster, object types.UID, scope driver.Scope) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == "" {
		return "", r.err
	}
	// Never before the latest scan, wherever the clock has been set to: that scan says nothing of what is marked from now on.
	at := max(r.clock.Now().Unix(), r.record.latest())
	lineage := driver.Lineage{Cluster: cluster, Epoch: r.current, At: time.Unix(at, 0)}.String()
	if _, ok := driver.ParseLineage(lineage); !ok {
		return "", errors.Errorf("the UID %q of the Cluster cannot be part of a lineage", cluster)
	}
	r.marked[object] = marking{cluster, at}
	r.scopes[scope] = true
	return lineage, nil
}

// Released notes that this process itself has removed the object's finalizer: that it is not there any more means nothing.
func (r *Reign) Released(object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marked, object)
}

// Scopes are those in which there may be something of ours.
func (r *Reign) Scopes() []driver.Scope {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]driver.Scope, 0, len(r.record.Scopes)+len(r.scopes))
	known := map[driver.Scope]bool{}
	for _, k := range r.record.Scopes {
		all, known[k.scope()] = append(all, k.scope()), true
	}
	for s := range r.scopes {
		if !known[s] {
			all = append(all, s)
		}
	}
	return all
}

// Examine adds to the record what a scan has found. missing has the Clusters of objects that no longer exist, by UID, although they were
// launched since the latest scan and not released by this process.
type Examine func(next Record, missing map[types.UID]types.UID) Record

// Checkpoint extends the present epoch to the beginning of a scan, which has read the API server afterwards: here says which objects were
// there. examine may be nil. It returns the record as it is persisted, and the name of the epoch. It fails with ErrNewEpoch if the reign
// was interrupted.
func (r *Reign) Checkpoint(
	ctx context.Context, began time.Time, here func(types.UID) bool, scopes []driver.Scope, examine Examine,
) (Record, string, error) {
	found, err := r.read(ctx)
	if err != nil {
		return Record{}, "", err
	}
	if why := r.interrupted(found); why != "" {
		ctrl.LoggerFrom(ctx).Info("Beginning a new epoch of the record of lineages: nothing is collected that was seen before", "reason", why)
		if err := r.begin(ctx, found); err != nil {
			return Record{}, "", err
		}
		return Record{}, "", ErrNewEpoch
	}
	r.mu.Lock()
	id, since, missing := r.current, r.record.latest(), r.missing(began, here)
	next := r.record.scanned(id, began).saw(scopes, r.clock.Now())
	r.mu.Unlock()
	if examine != nil {
		clusters := map[types.UID]types.UID{}
		for object, m := range missing {
			clusters[object] = m.cluster
		}
		next = examine(next, clusters)
	}
	for object, m := range missing {
		ctrl.LoggerFrom(ctx).Info("An object is gone that was launched since the latest scan, and that this process has not released: "+
			"what its Cluster has launched since then and no object claims is not collected", "objectUID", object, "clusterUID", m.cluster)
		next = next.withUnproven(m.cluster, since, began.Unix())
	}
	if err := r.write(ctx, found, next); err != nil {
		return Record{}, "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for object, m := range r.marked {
		if m.at < began.Unix() {
			delete(r.marked, object)
		}
	}
	return next, id, nil
}

// interrupted reports why the API server may not be in the state in which this process left it; empty if it is.
func (r *Reign) interrupted(found *corev1.ConfigMap) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch text := found.Data[recordKey]; {
	case r.current == "":
		return "there was none"
	case text != r.written && (text != r.attempted || text == ""):
		return "the record is not as this process has written it"
	}
	return ""
}

// missing are the objects that no longer exist although they were launched since the latest scan and not released by this process: a user
// has removed them by force, or a backup was restored that was taken after that scan, which the record does not show. r.mu is held.
func (r *Reign) missing(began time.Time, here func(types.UID) bool) map[types.UID]marking {
	gone := map[types.UID]marking{}
	for object, m := range r.marked {
		if m.at < began.Unix() && !here(object) {
			gone[object] = m
		}
	}
	return gone
}

// read reads the ConfigMap from the API server itself; it has no resourceVersion if there is none.
func (r *Reign) read(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	found := &corev1.ConfigMap{}
	err := r.reader.Get(ctx, r.key, found)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}}, nil
	}
	return found, errors.Wrapf(err, "reading ConfigMap %s", r.key)
}

// begin adds a new epoch to the record that was found.
func (r *Reign) begin(ctx context.Context, found *corev1.ConfigMap) error {
	record, err := decodeRecord(found.Data[recordKey])
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "The record of lineages cannot be read and is started again", "configMap", r.key)
		record = Record{}
	}
	r.mu.Lock()
	r.current, r.err = "", errors.New("a new epoch of the record of lineages has not been written yet")
	r.mu.Unlock()
	id := newEpochID()
	err = r.write(ctx, found, record.begun(id, r.clock.Now()))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err = err; err == nil {
		r.current = id
		clear(r.marked)
	}
	return err
}

// write persists the record in place of the one that was found.
func (r *Reign) write(ctx context.Context, found *corev1.ConfigMap, record Record) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	text, err := record.encode()
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.attempted = text
	r.mu.Unlock()
	next := found.DeepCopy()
	next.Data = map[string]string{recordKey: text}
	if found.ResourceVersion == "" {
		err = r.client.Create(ctx, next)
	} else {
		err = r.client.Update(ctx, next)
	}
	if err != nil {
		return errors.Wrapf(err, "writing ConfigMap %s", r.key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record, r.written = record, text
	return nil
}

// newEpochID returns 12 random characters of those that lineages take.
func newEpochID() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // It never fails.
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(random))[:12]
}
