package orphans

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// owner is what the mark of something names.
type owner struct {
	uid  types.UID
	name string
}

func (f Found) owner() owner { return owner{f.OwnerUID, f.Owner} }

// spared are the owners of which something is left behind that is not due: a cleanup ends whatever carries their mark.
func (l *list) spared(due []*candidate) map[owner]bool {
	ends := map[string]bool{}
	for _, d := range due {
		ends[d.key()] = true
	}
	spared := map[owner]bool{}
	for _, f := range l.found {
		if f.Kind != kindInstance && !ends[f.key()] {
			spared[f.owner()] = true
		}
	}
	return spared
}

// cleanUp has what was left behind deleted. The driver itself looks at it again: it ends only what carries the mark and is used by nothing.
// What is on its way is listed until it is gone, and reported once.
func (c *Collector) cleanUp(ctx context.Context, in driver.Scope, batch []*candidate) {
	if ctx.Err() != nil {
		return
	}
	handles := make([]driver.Handle, 0, len(batch))
	for _, d := range batch {
		handles = append(handles, driver.Handle{Scope: in, OwnerUID: d.OwnerUID, Owner: d.Owner})
	}
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	var answers []driver.Answer[[]string]
	err := driver.Recover(ctx, "Cleanup", func() error {
		answers = c.Cloud.Cleanup(ctx, in, handles)
		return nil
	})
	if err != nil || len(answers) != len(handles) {
		answers = driver.Failed[[]string](len(handles), errors.New("the driver gave no answer"))
	}
	for i, answer := range answers {
		if answer.Err != nil {
			c.failed(ctx, in, batch[i], answer.Err)
			continue
		}
		if c.reportFirst(in, batch[i], Orphan) {
			c.deleted(ctx, in, batch[i])
		}
	}
}
