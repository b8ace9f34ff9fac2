package inventory

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func (s *scope) track(key types.NamespacedName, handle driver.Handle, inTransition bool) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock.Now()
	t, ok := s.tracked[key]
	if !ok {
		s.activate(now)
		t = &tracked{since: now, calm: now}
		s.tracked[key] = t
	}
	if t.handle.Token != handle.Token || t.handle.ProviderID != "" && t.handle.ProviderID != handle.ProviderID {
		t.everListed = false // Another instance.
	}
	view, begins := s.view(handle), inTransition && !t.inTransition
	t.everListed = t.everListed || view.Listed
	view.EverListed = t.everListed
	// A machine that stops to wait and begins again within one reconcile waits for the same.
	if !t.seen.shows(view) || begins && now.Sub(t.calm) > s.opts.Fast {
		t.since = now
	}
	if t.inTransition && !inTransition {
		t.calm = now
	}
	t.handle, t.inTransition, t.seen = handle, inTransition, view
	if begins || !ok {
		s.hasten()
	}
	return t.seen
}

func (s *scope) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tracked[key]; ok {
		delete(s.put, cmp.Or(t.handle.ProviderID, tokenKey(t.handle.Token)))
		delete(s.tracked, key)
	}
}

// putIn replaces what is known of an instance by what the cloud has just answered.
func (s *scope) putIn(instance driver.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(instance)
	if key == tokenKey("") {
		return // Nothing leads to it.
	}
	if s.meanwhile != nil {
		s.meanwhile[key] = instance
	}
	if _, ok := s.listed[key]; ok {
		s.listed[key] = instance
		return
	}
	s.put[key] = instance
}

// view returns what is known by the handle. s.mu is held.
func (s *scope) view(handle driver.Handle) View {
	at := s.readingOf(handle)
	v := View{ListedAt: at.listedAt, Err: at.err, Outage: at.outage}
	if i, ok := s.findListed(handle); ok {
		v.Instance, v.Known, v.Listed = i.With(s.statuses[i.ProviderID]), true, true
	} else if i, ok := s.findPut(handle); ok {
		v.Instance, v.Known = i, true
	}
	v.Others = s.others(handle, cmp.Or(v.Instance.ProviderID, handle.ProviderID))
	return v
}

// others returns what carries the mark of the handle and exists, without the one of that provider ID. s.mu is held.
func (s *scope) others(handle driver.Handle, but string) []driver.Instance {
	var owned []driver.Instance
	for _, key := range s.marked[handle.OwnerUID] {
		i := s.listed[key]
		if i.ProviderID != "" && i.ProviderID != but && handle.Owns(i) && i.State != driverv1.InstanceTerminated {
			owned = append(owned, i)
		}
	}
	return owned
}

// keyOf identifies an instance in a scope: by its provider ID or, if it has none yet or never got one, by its token.
func keyOf(i driver.Instance) string { return cmp.Or(i.ProviderID, tokenKey(i.Token)) }

// tokenKey is no provider ID.
func tokenKey(token string) string { return "token " + token }

func (s *scope) findListed(handle driver.Handle) (driver.Instance, bool) {
	if handle.ProviderID != "" {
		i, ok := s.listed[handle.ProviderID]
		return i, ok
	}
	return best(handle, s.byToken[handle.Token], s.listed)
}

func (s *scope) findPut(handle driver.Handle) (driver.Instance, bool) {
	if handle.ProviderID != "" {
		i, ok := s.put[handle.ProviderID]
		return i, ok
	}
	for _, i := range s.put {
		if handle.Matches(i) {
			return i, true
		}
	}
	return driver.Instance{}, false
}

// best returns the instance that the token has led to: a live one, should there be an ended one as well, since it must not stay behind.
func best(handle driver.Handle, keys []string, among map[string]driver.Instance) (found driver.Instance, ok bool) {
	for _, key := range keys {
		i := among[key]
		if handle.Matches(i) && (!ok || found.State == driverv1.InstanceTerminated || found.ProviderID == "") {
			found, ok = i, true
		}
	}
	return found, ok
}

// enter takes the result of a list in. It returns the machines to wake, and those that have to do with an outage alone, which has
// time.
func (s *scope) enter(instances []driver.Instance, err error, began time.Time) (changed, concerned []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if partial := driver.AsIncomplete(err); err == nil || partial != nil {
		s.take(append(s.kept(partial), instances...))
	}
	s.enterReadings(err, began)
	s.meanwhile = nil
	for key, t := range s.tracked {
		now := s.viewOf(t)
		switch {
		case t.concerns(now):
			changed = append(changed, key)
			t.since = began
		case t.seen.Outage != now.Outage:
			concerned = append(concerned, key)
		}
		t.seen = now
	}
	return changed, concerned
}

// viewOf returns the View of a tracked machine. s.mu is held.
func (s *scope) viewOf(t *tracked) View {
	v := s.view(t.handle)
	t.everListed = t.everListed || v.Listed
	v.EverListed = t.everListed
	return v
}

// take replaces what is listed, but for what the cloud has answered since the list began: that may be newer. s.mu is held.
func (s *scope) take(instances []driver.Instance) {
	s.listed = make(map[string]driver.Instance, len(instances))
	s.marked = make(map[types.UID][]string, len(instances))
	s.byToken = make(map[string][]string, len(instances))
	for _, i := range instances {
		key := keyOf(i)
		if later, ok := s.meanwhile[key]; ok {
			i = later
		}
		s.listed[key] = i
		if i.OwnerUID != "" {
			s.marked[i.OwnerUID] = append(s.marked[i.OwnerUID], key)
		}
		if i.Token != "" {
			s.byToken[i.Token] = append(s.byToken[i.Token], key)
		}
		delete(s.put, key)
	}
	for _, keys := range s.marked {
		slices.Sort(keys)
	}
	for _, keys := range s.byToken {
		slices.Sort(keys)
	}
}
