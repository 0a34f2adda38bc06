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

// PullID says which pull. It is durable, and never used twice in one store. 0: none is named.
type PullID uint64

// PullState is how an [OpenPull] stands.
type PullState int32

const (
	// PullRunning: it has not ended yet.
	PullRunning PullState = C.WAYBILL_OPEN_PULL_RUNNING
	// PullStateFailed: the runtime reported an error, but something may have been transferred.
	PullStateFailed PullState = C.WAYBILL_OPEN_PULL_FAILED
	// PullStateUnknown: cancelled, timed out, connection lost, or the process that pulled ended.
	PullStateUnknown PullState = C.WAYBILL_OPEN_PULL_UNKNOWN
)

// String returns "running", "failed" or "unknown".
func (s PullState) String() string {
	return nameOr(C.waybill_pull_state_name(C.int32_t(s)), "PullState", int64(s))
}

// OpenPull is a pull that may still bring an image, or may have brought one that nobody recorded.
type OpenPull struct {
	ID             PullID
	Anything       bool   // stands for pulls that can't be named: it may have brought any image
	Several        bool   // several pulls of one string that ended alike, with the last end
	Image          string // as the pod wrote it; it need not parse
	RuntimeHandler string // empty: the default one
	State          PullState
	Began          time.Time
	Ended          time.Time // zero: it runs
	EndedAt        BootTime  // the same, as grace and window are measured
	Stamp          uint64    // the commit in which it began
}

// NamesGiven returns what the pull could have given an image as a name: "r.example/x:1",
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
	return take(names, func(n *C.waybill_strings) []string { return goStrings(*n) })
}

// PresumedSource is the source of a ledger entry that is presumed: a first start found the image, and
// nobody knows where it came from.
const PresumedSource = C.WAYBILL_PRESUMED_SOURCE

// LedgerEntry is an image that is known to have come to the node without the kubelet, or presumed so:
// it is open to all pods, under every name.
type LedgerEntry struct {
	ImageRef       string
	RuntimeHandler string   // empty: the default handler's copy
	Names          []string // at that time, sorted
	// How it is known: "listed", "imported", "pinned", "preloaded-list", "observed-preloaded", "adopted", "operator",
	// or what the caller named. PresumedSource: it is not known, but presumed.
	Source string
	Reason string // an operator's; may be empty
	Since  time.Time
	Stamp  uint64 // the commit that wrote it
}

// ShortNames says what an image string without a registry host may name on this node.
type ShortNames int32

const (
	// ShortNamesAnywhere: the runtime may complete it, or have an alias for it (CRI-O).
	ShortNamesAnywhere ShortNames = C.WAYBILL_SHORT_NAMES_ANYWHERE
	// ShortNamesDockerHub: the runtime completes it with docker.io only (containerd).
	ShortNamesDockerHub ShortNames = C.WAYBILL_SHORT_NAMES_DOCKER_HUB
)

// String returns "anywhere" or "docker.io".
func (s ShortNames) String() string {
	return nameOr(C.waybill_short_names_name(C.int32_t(s)), "ShortNames", int64(s))
}

// ParseShortNames is the inverse of String; ErrInvalidArgument for any other spelling.
func ParseShortNames(name string) (ShortNames, error) {
	var names C.int32_t
	var e *C.waybill_error
	code := C.waybill_parse_short_names(borrow(name), &names, &e)
	return ShortNames(names), takeError(code, e)
}

// Evidence says how long a pull that ended may still have brought an image. Both times are measured by
// the machine's own time, from the end of the pull to the token of a complete list; parts of a second
// count as a whole one.
type Evidence struct {
	Grace      time.Duration // after a failure that the runtime reported; 0: 2 minutes
	Window     time.Duration // after an unknown end; a reboot ends it, too; 0: 2 hours
	ShortNames ShortNames
	// How long is remembered what was known of an image that is gone; 0: 30 days, negative: not at all.
	Remember time.Duration
}

// ListToken places a list of images, pods or credentials in time: what was drawn before the list was made is not
// newer than it ([Store.BeginList]).
type ListToken struct {
	Commit uint64 // the commit sequence then
	Drawn  BootTime
	Store  uint64 // which store drew it: another one refuses it
}

// ImageList is a list of images for [Store.ObserveImages].
type ImageList struct {
	Images []ImageOnNode
	// Drawn before the list was made. nil: the list can't be placed in time.
	Token    *ListToken
	Complete bool   // everything that the runtime has, unfiltered
	Source   string // who made the list; empty: the runtime
	// IDs of listed images of which the runtime shows that no pull brought them. Never a guess: such
	// an image is open to all pods. Not of a list with a Source.
	Imported []string
	// Pulls that ended at this moment or before can bring nothing any more that is not on the list,
	// as the runtime showed before it made the list. nil: it was not asked.
	QuietUntil *BootTime
	// Names that the runtime has and that the list does not show yet: a pull that could have given
	// one of them still counts.
	NamesToCome []string
}

// JudgedImage says what became of an image that was judged.
type JudgedImage struct {
	ImageRef       string
	RuntimeHandler string
	Name           string // its first name, or its ref
	Preloaded      bool   // it is in the ledger now; otherwise it is closed
	Because        string // one sentence without a full stop
}

// ObserveReport says what a list of images did.
type ObserveReport struct {
	Listed           uint64        // entries of the list
	Repeated         uint64        // of those, an image that was in the list already
	NotNames         uint64        // names that do not parse, and so do not count
	Known            uint64        // had a record or a ledger entry, or are in quarantine
	Preloaded        uint64        // entered the ledger
	Closed           uint64        // got a record without credentials
	Left             uint64        // neither: the list can't be placed in time, or nothing is judged
	United           uint64        // records under another spelling of the same image, now one
	PullsSettled     uint64        // open pulls that can bring nothing any more
	RecordsRemoved   uint64        // of images that are not listed
	PreloadedRemoved uint64        // ledger entries likewise
	Judged           []JudgedImage // the first 1000
	SharedDigests    []string      // listed for two images, so of neither; the first 100
	NotJudgedBecause string        // why no image was judged; empty: they were
}

// Explanation says why an image is open or closed, for a person.
type Explanation struct {
	LedgerEntry   *LedgerEntry // nil: none
	Recorded      bool         // it has a record under this handler
	ClosedBecause string       // the record's; empty: a pull made it, or there is none
	Pulls         []OpenPull   // could have brought an image of this name; newest first
	InQuarantine  bool
	Distrustful   bool
	Text          string // what of this closes the image, in one sentence; empty: nothing
	Hint          string // what would open it
	// The record as it is stored, without CredentialMapping and Proofs: Credentials has what is in it.
	// nil: none.
	Record        *ImagePulledRecord
	Credentials   []ExplainedCredential
	ImageNames    []string          // of the record's mapping, those without credentials, too
	Unreadable    bool              // the record, or a record of the same ref
	Spellings     []string          // of the image, as the store knows them, sorted
	OtherHandlers []string          // that have a record of it; "": the default
	Quarantine    []QuarantineEntry // those that close it
}

// ExplainedKind says what an [ExplainedCredential] is.
type ExplainedKind int32

const (
	// ExplainedNodePods: every pod of the node may use it.
	ExplainedNodePods       ExplainedKind = C.WAYBILL_EXPLAINED_NODE_PODS
	ExplainedSecret         ExplainedKind = C.WAYBILL_EXPLAINED_SECRET
	ExplainedServiceAccount ExplainedKind = C.WAYBILL_EXPLAINED_SERVICE_ACCOUNT
)

// String returns "nodePods", "secret" or "serviceAccount".
func (k ExplainedKind) String() string {
	return word(int64(k), "ExplainedKind", "nodePods", "secret", "serviceAccount")
}

// CredentialStanding says whether what a record has still counts. Only StandingCounts opens anything.
type CredentialStanding int32

const (
	StandingCounts    CredentialStanding = C.WAYBILL_STANDING_COUNTS
	StandingTooOld    CredentialStanding = C.WAYBILL_STANDING_TOO_OLD   // proven too long ago ([AgeLimits])
	StandingForgotten CredentialStanding = C.WAYBILL_STANDING_FORGOTTEN // revoked, and not taken out yet
)

// String returns "counts", "tooOld" or "forgotten".
func (s CredentialStanding) String() string {
	return nameOr(C.waybill_credential_standing_name(C.int32_t(s)), "CredentialStanding", int64(s))
}

// ExplainedCredential is what a record has under an image name. Never with the hash of a Secret.
type ExplainedCredential struct {
	ImageName string
	Kind      ExplainedKind
	Who       CredentialName // empty for ExplainedNodePods
	Proof     Proof
	Standing  CredentialStanding
}

// OtherAnswer says what would have to change for the opposite of a decision with this reason, in one
// sentence without a full stop. x explains the same image. Empty: no reason has this number.
func (x *Explanation) OtherAnswer(reason Reason) string {
	var answer *C.waybill_string
	if C.waybill_other_answer(C.int32_t(reason), borrow(x.Hint), &answer, nil) != C.WAYBILL_OK {
		return ""
	}
	return takeString(answer)
}

// BeginList draws a token. Call it before you ask the runtime for the list of images
// ([Store.ObserveImages], [Store.Prune]) or the lists of pods ([Store.CleanUpUserNamespaces]), or the
// API server for Secrets and service accounts ([Store.Reconcile]). Errors as of
// [Store.RecordPullIntent].
func (s *Store) BeginList() (ListToken, error) {
	var token C.waybill_list_token
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_begin_list(h, &token, e) })
	if err != nil {
		return ListToken{}, err
	}
	return ListToken{Commit: uint64(token.commit), Drawn: goBootTime(&token.drawn), Store: uint64(token.store)}, nil
}

// ObserveImages learns the spellings of each listed image, and judges each that has neither record nor
// ledger entry, once. A name that no open pull could have given it proves that it came without the
// kubelet: it enters the ledger. Otherwise it gets a record without credentials, and is closed until a
// pod proves some. A complete list also drops open pulls that can bring nothing any more ([Evidence]),
// and removes records and ledger entries of images that it does not have and that are not newer than
// its token. A list without a token closes images, and does nothing else. A distrustful store judges
// nothing. RulesKubelet: nothing is done, and the report says so.
//
// ErrInvalidArgument: the token is from the future or of another store, or older than that of a list that was observed
// before (list again), or a complete list is empty although there is something to remove
// ([AllowEmpty]). ErrLimitExceeded: more than 1,000,000 images. Further errors as of
// [Store.RecordPullIntent].
func (s *Store) ObserveImages(list ImageList, options ...ChangeOption) (ObserveReport, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_image_list](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.images = cImages(&a, list.Images)
	if list.Token != nil {
		c.token = one[C.waybill_list_token](&a)
		*c.token = cToken(*list.Token)
	}
	c.complete = C.bool(list.Complete)
	c.source = a.string(list.Source)
	c.imported = a.strings(list.Imported)
	if list.QuietUntil != nil {
		c.quiet_until = one[C.waybill_boot_time](&a)
		*c.quiet_until = cBootTime(*list.QuietUntil)
	}
	c.names_to_come = a.strings(list.NamesToCome)
	how := cChangeOptions(&a, options)
	var report *C.waybill_observe_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_observe_images(h, c, how, &report, e)
	})
	return take(report, goObserveReport), err
}

// OpenPulls returns all open pulls, the oldest first. Errors as of [Store.GetRecord].
func (s *Store) OpenPulls() ([]OpenPull, error) {
	var pulls *C.waybill_open_pulls
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_open_pulls(h, &pulls, e) })
	return take(pulls, func(p *C.waybill_open_pulls) []OpenPull {
		return goList(p.items, p.count, goOpenPull)
	}), err
}

// DropOpenPull records an operator's word that this pull brought nothing, and will bring nothing.
// reason, 1 to 1,024 bytes, goes into the journal of trust. ErrNotFound: there is no such pull.
// ErrConflict: it runs in this process. Further errors as of [Store.RecordPullIntent].
func (s *Store) DropOpenPull(pull PullID, reason string, options ...ChangeOption) error {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_drop_open_pull(h, C.waybill_pull_id(pull), borrow(reason), how, e)
	})
}

// Ledger returns all ledger entries, sorted by image ref and handler. Errors as of [Store.GetRecord].
func (s *Store) Ledger() ([]LedgerEntry, error) {
	var entries *C.waybill_ledger_entries
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_ledger(h, &entries, e) })
	return take(entries, func(l *C.waybill_ledger_entries) []LedgerEntry {
		return goList(l.items, l.count, goLedgerEntry)
	}), err
}

// AddToLedger records an operator's word that this image is preloaded: it is not judged. image.ID is
// any spelling of it; its names are kept. source and reason: 1 to 1,024 bytes. Records and quarantine
// of the image stay. ErrInvalidArgument: no ID. Further errors as of [Store.RecordPullIntent].
func (s *Store) AddToLedger(image ImageOnNode, source, reason string, options ...ChangeOption) error {
	var a arena
	defer a.free()
	c := one[C.waybill_image_on_node](&a)
	*c = cImageOnNode(&a, &image)
	how := cChangeOptions(&a, options)
	return s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_add_to_ledger(h, c, borrow(source), borrow(reason), how, e)
	})
}

// RemoveFromLedger records an operator's word that the image is not preloaded: without a record it
// gets one without credentials, or the next list would enter it again. reason, 1 to 1,024 bytes, goes
// into the journal of trust. It returns whether there was an entry; copy.Image is ignored. Errors as
// of [Store.RecordPullIntent].
func (s *Store) RemoveFromLedger(copy ImageCopy, reason string, options ...ChangeOption) (bool, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var removed C.bool
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_remove_from_ledger(h, borrowCopy(&copy), borrow(reason), how, &removed, e)
	})
	return bool(removed), err
}

// Settled is an operator's word on an image that is presumed preloaded.
type Settled int32

const (
	SettledPreloaded Settled = C.WAYBILL_SETTLED_PRELOADED // it is known from now on, source "operator"
	// SettledClosed: it leaves the ledger; without a record it gets one without credentials.
	SettledClosed Settled = C.WAYBILL_SETTLED_CLOSED
)

// String returns "preloaded" or "closed".
func (s Settled) String() string { return word(int64(s), "Settled", "preloaded", "closed") }

// SettlePresumed records an operator's word on an image whose ledger entry has the source
// PresumedSource; otherwise nothing is changed. It returns whether it was presumed. reason: 1 to 1,024
// bytes; copy.Image is ignored. Errors as of [Store.RecordPullIntent].
func (s *Store) SettlePresumed(copy ImageCopy, settled Settled, reason string, options ...ChangeOption) (bool, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var presumed C.bool
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_settle_presumed(h, borrowCopy(&copy), C.int32_t(settled), borrow(reason), how, &presumed, e)
	})
	return bool(presumed), err
}

// Explain says why the image is open or closed for a pod without credentials, and what would open it.
// names are those that the runtime lists it by; without any, copy.Image is taken. RulesKubelet: there
// is no ledger. ErrInvalidArgument: the ref is empty, or the handler is not in the registry. Further
// errors as of [Store.GetRecord].
func (s *Store) Explain(copy ImageCopy, names ...string) (Explanation, error) {
	var a arena
	defer a.free()
	listed := a.strings(names)
	var explanation *C.waybill_explanation
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_explain(h, borrowCopy(&copy), listed, &explanation, e)
	})
	return take(explanation, func(x *C.waybill_explanation) Explanation {
		to := Explanation{
			Recorded:      bool(x.recorded),
			ClosedBecause: goString(x.closed_because),
			Pulls:         goList(x.pulls.items, x.pulls.count, goOpenPull),
			InQuarantine:  bool(x.in_quarantine),
			Distrustful:   bool(x.distrustful),
			Text:          goString(x.text),
			Hint:          goString(x.hint),
			Credentials:   goList(x.credentials, x.credential_count, goExplainedCredential),
			ImageNames:    goStrings(x.image_names),
			Unreadable:    bool(x.unreadable),
			Spellings:     goStrings(x.spellings),
			OtherHandlers: goStrings(x.other_handlers),
			Quarantine:    goList(x.quarantine.items, x.quarantine.count, goQuarantineEntry),
		}
		if x.ledger_entry != nil {
			to.LedgerEntry = new(goLedgerEntry(x.ledger_entry))
		}
		if x.record != nil {
			to.Record = new(goRecord(x.record))
		}
		return to
	}), err
}

func cToken(t ListToken) C.waybill_list_token {
	return C.waybill_list_token{commit: C.uint64_t(t.Commit), drawn: cBootTime(t.Drawn), store: C.uint64_t(t.Store)}
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

func goExplainedCredential(c *C.waybill_explained_credential) ExplainedCredential {
	return ExplainedCredential{
		ImageName: goString(c.image_name),
		Kind:      ExplainedKind(c.kind),
		Who:       goCredentialName(&c.who),
		Proof:     goProof(&c.proof),
		Standing:  CredentialStanding(c.standing),
	}
}

func goOpenPull(p *C.waybill_open_pull) OpenPull {
	return OpenPull{
		ID:             PullID(p.id),
		Anything:       bool(p.anything),
		Several:        bool(p.several),
		Image:          goString(p.image),
		RuntimeHandler: goString(p.runtime_handler),
		State:          PullState(p.state),
		Began:          goTime(p.began),
		Ended:          goTimeOrZero(p.ended),
		EndedAt:        goBootTime(&p.ended_at),
		Stamp:          uint64(p.stamp),
	}
}

func goLedgerEntry(l *C.waybill_ledger_entry) LedgerEntry {
	return LedgerEntry{
		ImageRef:       goString(l.image_ref),
		RuntimeHandler: goString(l.runtime_handler),
		Names:          goStrings(l.names),
		Source:         goString(l.source),
		Reason:         goString(l.reason),
		Since:          goTime(l.since),
		Stamp:          uint64(l.stamp),
	}
}

func goObserveReport(r *C.waybill_observe_report) ObserveReport {
	return ObserveReport{
		Listed:           uint64(r.listed),
		Repeated:         uint64(r.repeated),
		NotNames:         uint64(r.not_names),
		Known:            uint64(r.known),
		Preloaded:        uint64(r.preloaded),
		Closed:           uint64(r.closed),
		Left:             uint64(r.left),
		United:           uint64(r.united),
		PullsSettled:     uint64(r.pulls_settled),
		RecordsRemoved:   uint64(r.records_removed),
		PreloadedRemoved: uint64(r.preloaded_removed),
		Judged: goList(r.judged, r.judged_count, func(j *C.waybill_judged_image) JudgedImage {
			return JudgedImage{
				ImageRef:       goString(j.image_ref),
				RuntimeHandler: goString(j.runtime_handler),
				Name:           goString(j.name),
				Preloaded:      bool(j.preloaded),
				Because:        goString(j.because),
			}
		}),
		SharedDigests:    goStrings(r.shared_digests),
		NotJudgedBecause: goString(r.not_judged_because),
	}
}
