package machine

// tell emits the events that the steps left, now that what they are about is written.
func (r *Reconciler) tell(s *scope) {
	for _, event := range s.told {
		r.Recorder.Eventf(s.machine, nil, event.kind, event.reason, event.action, "%s", event.note)
	}
}
