package plan

import (
	"fmt"

	"market/internal/call"
	"market/internal/refusal"
)

// Refuse says no to what would pass a limit of a plan: it names the limit, the plan and the next plan that has more, or says that none has.
func (t Table) Refuse(name string, key Key) *refusal.Error {
	now, field := t.Of(name), key.Field()
	stands := &refusal.PlanLimit{Limit: string(key), Value: field.Of(now.Limits), Plan: now.Name}
	text := fmt.Sprintf("the %s plan has %s", now.Name, field.sentence(now.Limits))
	if larger, found := t.Larger(name, key); found {
		text += fmt.Sprintf("; %s has %s", larger.Name, field.value(larger.Limits))
		stands.Next = &refusal.NextPlan{Name: larger.Name, Value: field.Of(larger.Limits)}
	} else {
		text += ", and no plan has more"
	}
	no := refusal.New(call.PlanLimit, "%s", text)
	no.Plan = stands
	return no
}

// sentence is what a plan has of it.
func (f Field) sentence(l Limits) string { return fmt.Sprintf(f.has, f.value(l)) }

// value is the value alone, as it stands in a sentence that has said what it is of.
func (f Field) value(l Limits) string {
	switch f.Key {
	case KeyAnswerRetention, KeyProbeEvery:
		return spell(f.get(l))
	case KeyFeeBPS:
		return percent(f.get(l))
	case KeyListings, KeyEndpoints, KeyTrialCallsPerDay, KeyPriority:
	}
	return whole(f.get(l))
}

// Allows refuses a number of something that a plan does not have; nil where it does.
func (t Table) Allows(name string, key Key, wanted int64) error {
	if wanted <= key.Field().Of(t.Of(name).Limits) {
		return nil
	}
	return t.Refuse(name, key)
}
