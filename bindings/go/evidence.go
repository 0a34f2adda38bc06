package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// Under RulesClosed an image is open for one of two reasons: a credential was proven for it, or it is
// in the ledger of images that came to the node without the kubelet. Under RulesKubelet there is no
// ledger.

// PullID says which pull is meant. It is durable, and never used twice in one store. 0: no pull is
// named.
type PullID uint64

// NamesGiven returns the names that the pull could have given an image: "r.example/x:1",
// "r.example/x@…", or "anything". nil if there is no memory for it.
func (p OpenPull) NamesGiven(short ShortNames) []string {
	var a arena
	defer a.free()
	c := one[C.waybill_open_pull](&a)
	c.anything = C.bool(p.Anything)
	c.image = a.string(p.Image)
	c.state = C.WAYBILL_OPEN_PULL_RUNNING
	var names *C.waybill_strings
	var e *C.waybill_error
	code := C.waybill_names_given_by(c, C.int32_t(short), &names, &e)
	_ = takeError(code, e)
	return take(names, goStringsOf)
}

// PresumedSource is the source of a ledger entry that is presumed: a first start found the image, and
// nobody knows where it came from.
const PresumedSource = C.WAYBILL_PRESUMED_SOURCE

// Evidence says how long a pull stays open after it ended, since its image may still arrive. Both
// times are measured by the time since boot, from the end of the pull to the token of a complete
// list; parts of a second count as a whole one.
type Evidence struct {
	Grace      time.Duration // after a failure that the runtime reported; 0: 2 minutes
	Window     time.Duration // after an unknown end; a reboot ends it, too; 0: 2 hours
	ShortNames ShortNames
	// How long the store remembers what it knew of an image that is gone; 0: 30 days, negative: not at
	// all.
	Remember time.Duration
}

// ListToken says how old a list of images, pods or credentials is at most. It is drawn before the
// list is made ([Store.BeginList]), so whatever the store learns later is newer than the token.
type ListToken struct {
	Commit uint64 // the commit sequence then
	Drawn  BootTime
	Store  uint64 // which store drew it; any other refuses it
}

// ImageList is a list of images for [Store.ObserveImages].
type ImageList struct {
	Images []ImageOnNode
	// Drawn before the list was made. nil: the list can't be placed in time.
	Token    *ListToken
	Complete bool   // everything that the runtime has, unfiltered
	Source   string // who made the list; empty: the runtime
	// IDs of listed images that no pull brought, as the runtime shows. Never name one by guessing: it
	// is then open to all pods. Ignored in a list with a Source.
	Imported []string
	// Pulls that ended by this moment can't bring an image that the list lacks: the runtime showed
	// that before it made the list. nil: the runtime was not asked.
	QuietUntil *BootTime
	// Names that the runtime has, but that the list does not show yet. QuietUntil does not end a pull
	// that could have given one of them.
	NamesToCome []string
	// Bytes of each of Images on the node's disk, 0: unknown; as many as Images, or none. For a trace
	// alone.
	Sizes []uint64
}

// OtherAnswer says what would have to change to reverse a decision with this reason, in one
// sentence without a full stop. x explains the same image. Empty: no reason has this number.
func (x *Explanation) OtherAnswer(reason Reason) string {
	var answer *C.waybill_string
	if C.waybill_other_answer(C.int32_t(reason), borrow(x.Hint), &answer, nil) != C.WAYBILL_OK {
		return ""
	}
	return takeString(answer)
}

// Explain says why the image is open or closed for a pod without credentials, and what would open it.
// names are those that the runtime lists it by; if there are none, copy.Image is used.
// RulesKubelet: there is no ledger. ErrInvalidArgument: the ref is empty, or the handler is not in
// the registry. Further errors as of [Store.GetRecord].
func (s *Store) Explain(copy ImageCopy, names ...string) (Explanation, error) {
	var a arena
	defer a.free()
	listed := a.strings(names)
	var explanation *C.waybill_explanation
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_explain(h, borrowCopy(&copy), listed, &explanation, e)
	})
	return take(explanation, goExplanation), err
}

func cImageList(a *arena, l *ImageList) (c C.waybill_image_list) {
	c.struct_size = C.size_t(unsafe.Sizeof(c))
	c.images = cImagesOnNode(a, l.Images)
	if l.Token != nil {
		c.token = put(a, cListToken(*l.Token))
	}
	c.complete = C.bool(l.Complete)
	c.source = a.string(l.Source)
	c.imported = a.strings(l.Imported)
	if l.QuietUntil != nil {
		c.quiet_until = put(a, cBootTime(*l.QuietUntil))
	}
	c.names_to_come = a.strings(l.NamesToCome)
	if len(l.Sizes) == len(l.Images) {
		c.sizes, _ = cList(a, l.Sizes, func(_ *arena, size *uint64) C.uint64_t { return C.uint64_t(*size) })
	}
	return c
}

func cListToken(t ListToken) C.waybill_list_token {
	return C.waybill_list_token{commit: C.uint64_t(t.Commit), drawn: cBootTime(t.Drawn), store: C.uint64_t(t.Store)}
}

func goListToken(t *C.waybill_list_token) ListToken {
	return ListToken{Commit: uint64(t.commit), Drawn: goBootTime(&t.drawn), Store: uint64(t.store)}
}

func cEvidence(a *arena, e *Evidence) *C.waybill_evidence_options {
	c := one[C.waybill_evidence_options](a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.grace_seconds = wholeSeconds(e.Grace)
	c.window_seconds = wholeSeconds(e.Window)
	c.short_names = C.int32_t(e.ShortNames)
	c.remember_seconds = wholeSeconds(e.Remember)
	return c
}

// wholeSeconds rounds away from 0, which stands for the default.
func wholeSeconds(d time.Duration) C.int64_t {
	seconds := d / time.Second
	switch rest := d % time.Second; {
	case rest > 0:
		seconds++
	case rest < 0:
		seconds--
	}
	return C.int64_t(seconds)
}
