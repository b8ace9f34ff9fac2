package external

import "context"

// Changed does what the event of a definition does.
func (i *Informers) Changed(ctx context.Context, crd string) { i.changed(ctx, crd) }
