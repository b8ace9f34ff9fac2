package ec2

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"millwright.dev/test/clouds/aws/simapi"
)

// callLog records the calls.
type callLog struct {
	mu     sync.Mutex
	lastID int64
	calls  []*call
}

// call is a record under way.
type call struct {
	log   *callLog
	fault *simapi.Fault
	entry simapi.Call
}

func (l *callLog) begin(now time.Time, p params) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	c := &call{log: l, entry: simapi.Call{
		ID: l.lastID, Time: now, Action: p["Action"], ClientToken: p["ClientToken"], Parameters: redact(p),
	}}
	l.calls = append(l.calls, c)
	return c
}

// redact leaves out the user data, which holds credentials, and what is the same in each call.
func redact(p params) map[string]string {
	out := map[string]string{}
	for k, v := range p {
		switch k {
		case "Action", "Version":
		case "UserData":
			raw, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				raw = []byte(v)
			}
			out["UserData.Size"] = strconv.Itoa(len(raw))
			out["UserData.SHA256"] = digest(raw)
		default:
			out[k] = v
		}
	}
	return out
}

func (l *callLog) list() []simapi.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]simapi.Call, 0, len(l.calls))
	for _, c := range l.calls {
		entry := c.entry
		entry.Parameters = maps.Clone(entry.Parameters)
		entry.InstanceIDs = slices.Clone(entry.InstanceIDs)
		out = append(out, entry)
	}
	return out
}

func (l *callLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
}

func (c *call) change(f func(*simapi.Call)) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	f(&c.entry)
}

func (c *call) useFault(f *activeFault) {
	if f == nil {
		return
	}
	fault := f.fault
	c.fault = &fault
	c.change(func(e *simapi.Call) { e.FaultID = fault.ID })
}

func (c *call) caller(accessKeyID string) {
	c.change(func(e *simapi.Call) { e.AccessKeyID = accessKeyID })
}

// instances notes instances that the call is about.
func (c *call) instances(ids ...string) {
	c.change(func(e *simapi.Call) {
		for _, id := range ids {
			if !slices.Contains(e.InstanceIDs, id) {
				e.InstanceIDs = append(e.InstanceIDs, id)
			}
		}
	})
}

func (c *call) end(status int, code string) {
	c.change(func(e *simapi.Call) { e.Done, e.Status, e.Code = true, status, code })
}
