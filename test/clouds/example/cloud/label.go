package cloud

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

// Label is the body of the call that sets labels of a machine or a part. Labels that it does not name stay.
type Label struct {
	Labels map[string]string `json:"labels"`
}

// labelMachine sets labels of a machine, and not of its parts.
func (c *Cloud) labelMachine(a *account, r request) reply {
	m, ok := a.machines[key(r.zone, r.name)]
	if !ok {
		return missing("machine", r)
	}
	if refused := relabel(&m.Labels, r); refused != nil {
		return *refused
	}
	return answer(http.StatusOK, m.Machine)
}

func (c *Cloud) labelPart(a *account, r request) reply {
	p, ok := a.parts[r.kind][key(r.zone, r.name)]
	if !ok {
		return missing(r.kind, r)
	}
	if refused := relabel(&p.Labels, r); refused != nil {
		return *refused
	}
	return answer(http.StatusOK, p.Part)
}

// checkLabels returns the refusal of labels that can never be right, or nil.
func checkLabels(labels map[string]string) *reply {
	no := func(format string, args ...any) *reply {
		refused := refuse(http.StatusBadRequest, CodeInvalidArgument, fmt.Sprintf(format, args...))
		return &refused
	}
	if len(labels) > maxLabels {
		return no("there are %d labels, at most %d are taken", len(labels), maxLabels)
	}
	for k, v := range labels {
		if k == "" || len(k) > maxLabelValue || len(v) > maxLabelValue || !plainLabel.MatchString(k) || !plainLabel.MatchString(v) {
			return no("label %q=%q is not of lower-case letters, digits, _ and -, at most 64", k, v)
		}
	}
	return nil
}

// relabel replaces labels by a copy, since a machine and its parts begin with the same.
func relabel(labels *map[string]string, r request) *reply {
	var in Label
	if err := json.Unmarshal(r.body, &in); err != nil {
		refused := refuse(http.StatusBadRequest, CodeInvalidArgument, "the body is not that of the call")
		return &refused
	}
	all := maps.Clone(*labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, in.Labels)
	if no := checkLabels(all); no != nil {
		return no
	}
	*labels = all
	return nil
}
