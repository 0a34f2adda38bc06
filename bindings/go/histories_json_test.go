package waybill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"waybill.dev/go"
)

// Results as JSON, as the lines of a history expect them: without empty, zero and false values.

// object is a JSON object.
type object map[string]any

func (o *object) UnmarshalJSON(text []byte) error {
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	*o = objects(plain).(object)
	return nil
}

// objects makes each JSON object in a value an object.
func objects(value any) any {
	switch value := value.(type) {
	case map[string]any:
		made := object{}
		for name, part := range value {
			made[name] = objects(part)
		}
		return made
	case []any:
		for i := range value {
			value[i] = objects(value[i])
		}
	}
	return value
}

func (o object) text(field string) string  { text, _ := o[field].(string); return text }
func (o object) flag(field string) bool    { flag, _ := o[field].(bool); return flag }
func (o object) list(field string) []any   { list, _ := o[field].([]any); return list }
func (o object) number(field string) int64 { number, _ := o[field].(float64); return int64(number) }
func (o object) texts(field string) []string {
	var texts []string
	for _, value := range o.list(field) {
		texts = append(texts, value.(string))
	}
	return texts
}

// images is nil only if there is no such list.
func (o object) images(field string) []waybill.ImageOnNode {
	if _, there := o[field].([]any); !there {
		return nil
	}
	images := []waybill.ImageOnNode{}
	for _, value := range o.list(field) {
		images = append(images, imageIn(value))
	}
	return images
}

func imageIn(value any) waybill.ImageOnNode {
	if id, alone := value.(string); alone {
		return waybill.ImageOnNode{ID: id}
	}
	o := value.(object)
	image := waybill.ImageOnNode{
		ID: o.text("id"), RepoTags: o.texts("repoTags"), RepoDigests: o.texts("repoDigests"),
		RuntimeHandler: o.text("handler"), Pinned: o.flag("pinned"),
	}
	for i := range o.number("moreDigests") {
		image.RepoDigests = append(image.RepoDigests, fmt.Sprintf("registry.example.com/more@sha256:%064d", i))
	}
	return image
}

func secretsIn(value any) []waybill.ImagePullSecret {
	var secrets []waybill.ImagePullSecret
	list, _ := value.([]any)
	for _, value := range list {
		s := value.(object)
		secrets = append(secrets, waybill.ImagePullSecret{
			UID: s.text("uid"), Namespace: s.text("namespace"), Name: s.text("name"), CredentialHash: s.text("credentialHash"),
		})
	}
	return secrets
}

func failureIn(line object) waybill.PullFailure {
	return map[string]waybill.PullFailure{
		"": waybill.PullFailed, "failed": waybill.PullFailed, "unknown": waybill.PullOutcomeUnknown, "nothingTransferred": waybill.PullNothingTransferred,
	}[line.text("how")]
}

// meant is a value with the values that its names stand for.
func meant(let map[string]any, value any) any {
	switch value := value.(type) {
	case string:
		if stands, there := let[value]; there {
			return stands
		}
	case []any:
		made := make([]any, len(value))
		for i := range value {
			made[i] = meant(let, value[i])
		}
		return made
	case object:
		made := object{}
		for name, part := range value {
			made[name] = meant(let, part)
		}
		return made
	}
	return value
}

func outcome(err error) any {
	if err == nil {
		return "done"
	}
	var e *waybill.Error
	if !errors.As(err, &e) {
		return object{"error": "none of waybill's", "message": err.Error()}
	}
	return object{"error": e.Code.String(), "message": e.Message}
}

func answerOr(err error, answer func() any) any {
	if err != nil {
		return outcome(err)
	}
	return answer()
}

func each[T any](values []T, convert func(T) any) any {
	list := []any{}
	for _, value := range values {
		list = append(list, convert(value))
	}
	return list
}

// telling leaves out what says nothing.
func telling(o object) any {
	for name, value := range o {
		v := reflect.ValueOf(value)
		nothing := !v.IsValid() || v.IsZero()
		if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
			nothing = v.Len() == 0
		}
		if nothing {
			delete(o, name)
		}
	}
	return o
}

func listed(texts []string) any {
	if len(texts) > 20 {
		return fmt.Sprintf("%d of them", len(texts))
	}
	return texts
}

// judged are the names of what was judged so.
func judged(r waybill.ObserveReport, preloaded bool) any {
	count := r.Closed
	if preloaded {
		count = r.Preloaded
	}
	if len(r.Judged) >= 1000 && count > 0 {
		return fmt.Sprintf("%d of them", count)
	}
	var names []string
	for _, image := range r.Judged {
		if image.Preloaded != preloaded {
			continue
		}
		if image.Because == "" || image.ImageRef == "" {
			return "does not say why"
		}
		if image.RuntimeHandler != "" {
			image.Name += " for " + image.RuntimeHandler
		}
		names = append(names, image.Name)
	}
	if uint64(len(names)) != count {
		return "contradicts itself"
	}
	slices.Sort(names)
	return listed(names)
}

func observeObject(r waybill.ObserveReport) any {
	return telling(object{
		"listed": r.Listed, "repeated": r.Repeated, "notNames": r.NotNames, "known": r.Known, "preloaded": judged(r, true), "closed": judged(r, false),
		"left": r.Left, "united": r.United, "pullsSettled": r.PullsSettled, "recordsRemoved": r.RecordsRemoved,
		"preloadedRemoved": r.PreloadedRemoved, "sharedDigests": r.SharedDigests, "notJudgedBecause": r.NotJudgedBecause,
	})
}

func openPullObject(p waybill.OpenPull) any {
	return telling(object{"anything": p.Anything, "image": p.Image, "handler": p.RuntimeHandler, "state": p.State.String(), "several": p.Several})
}

func ledgerObject(e waybill.LedgerEntry) any {
	return telling(object{"imageRef": e.ImageRef, "handler": e.RuntimeHandler, "names": listed(e.Names), "source": e.Source, "reason": e.Reason})
}

func explanationObject(x waybill.Explanation) any {
	o := object{
		"recorded": x.Recorded, "closedBecause": x.ClosedBecause, "pulls": each(x.Pulls, openPullObject),
		"inQuarantine": x.InQuarantine, "distrustful": x.Distrustful, "text": x.Text, "hint": x.Hint,
	}
	if x.LedgerEntry != nil {
		o["ledgerEntry"] = ledgerObject(*x.LedgerEntry)
	}
	return telling(o)
}

func recoveryObject(r waybill.RecoveryReport) any {
	u := r.UserNamespaces
	o := object{
		"setAside": r.SetAside, "distrustful": r.Distrustful, "distrustReason": r.DistrustReason, "clockWasAhead": r.ClockWasAhead != "",
		"timesMended": r.TimesMended, "afterGap": r.AfterGap, "gapReason": r.GapReason, "gapClosed": r.GapClosed, "gapImages": r.GapImages,
		"intentsFound": r.IntentsFound, "intentsReplayed": r.IntentsReplayed, "intentsLeft": r.IntentsLeft, "replayed": r.Replayed,
		"replaySkipped": r.ReplaySkipped, "records": r.Records, "quarantineEntries": r.QuarantineEntries,
		"userNamespaces": telling(object{
			"unchanged": u.Unchanged, "imported": u.Imported, "held": u.Held, "repairedBlocks": u.RepairedBlocks, "outsidePool": u.OutsidePool,
			"otherLength": u.OtherLength, "offPool": slices.Sorted(slices.Values(u.OffPool)), "refusedBecause": u.RefusedBecause,
		}),
	}
	if r.Observed != nil {
		observed := observeObject(*r.Observed).(object)
		if r.FirstStart && len(observed) > 0 {
			observed["firstStart"] = true
		}
		o["observed"] = observed
	}
	return telling(o)
}

func trustObject(t waybill.TrustState) any {
	actions := map[waybill.TrustAction]string{
		waybill.Distrusted: "distrust", waybill.Trusted: "trust", waybill.TakenBack: "takenBack", waybill.Noted: "note",
	}
	kinds := map[waybill.TrustKind]string{
		waybill.TrustOther: "other", waybill.TrustOperator: "operator", waybill.TrustStoreLost: "storeLost", waybill.TrustStoreStale: "storeStale",
		waybill.TrustStoreRebuilt: "storeRebuilt", waybill.TrustStoreRestored: "storeRestored", waybill.TrustImportUnfinished: "importUnfinished",
		waybill.TrustGap: "gap", waybill.TrustJournalFull: "journalFull",
	}
	return object{"distrustful": t.Distrustful, "journal": each(t.Journal, func(e waybill.TrustEvent) any {
		return actions[e.Action] + " " + kinds[e.Kind]
	})}
}

func isError(got any) bool {
	o, is := got.(object)
	_, code := o["error"]
	_, message := o["message"]
	return is && code && message
}

// Fields whose words are for people: the history has a part of them, or "" if there are none.
var sentences = []string{"closedBecause", "notJudgedBecause", "text", "hint", "losses"}

func matches(want, got any) bool {
	if list, is := want.([]any); is {
		other, same := got.([]any)
		return same && slices.EqualFunc(list, other, matches)
	}
	left, is := want.(object)
	right, same := got.(object)
	if !is || !same {
		return reflect.DeepEqual(want, got)
	}
	if isError(right) {
		return left["error"] == right["error"] && strings.Contains(right.text("message"), left.text("message"))
	}
	for _, sentence := range sentences {
		part, expected := left[sentence].(string)
		words, there := right[sentence].(string)
		if expected && (there == (part == "") || !strings.Contains(words, part)) {
			return false
		}
	}
	fields := func(o object) []string {
		var names []string
		for name := range o {
			if !slices.Contains(sentences, name) {
				names = append(names, name)
			}
		}
		return slices.Sorted(slices.Values(names))
	}
	names := fields(left)
	return slices.Equal(names, fields(right)) && !slices.ContainsFunc(names, func(name string) bool { return !matches(left[name], right[name]) })
}
