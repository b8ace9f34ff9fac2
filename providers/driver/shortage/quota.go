package shortage

import (
	"errors"
	"slices"

	"millwright.dev/providers/driver"
)

// IsShortage returns whether another type or place may have what a launch lacked: capacity, or a quota that is not the same for all.
func IsShortage(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Class == driver.ClassCapacity || e.Class == driver.ClassQuota && !e.AllTypes)
}

// quotaOf returns the subject of a quota: clouds count by type, or family of types, and market, whatever the failure domain.
func quotaOf(limitScope string, c driver.Candidate) subject {
	return subject{offering: offering{limitScope: limitScope, instanceType: c.InstanceType, market: c.Market}}
}

// TypeOverQuota is an instance type that is over a quota, in the cloud's words.
type TypeOverQuota struct{ InstanceType, Words string }

// OverQuota returns the types of the candidates that were over a quota lately, in the order of the candidates.
func (m *Memory) OverQuota(limitScope string, candidates []driver.Candidate) (types []TypeOverQuota) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.present()
	for _, c := range candidates {
		words, over := m.quotas[quotaOf(limitScope, c)]
		if t := (TypeOverQuota{c.InstanceType, words}); over && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}
