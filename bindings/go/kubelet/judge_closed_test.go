package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// Under the closed rules each difference from the kubelet must come from one of these rules
// (store/node/facade/node_store.h, "Evidence"). The judge knows from the histories what pulls brought, and judges
// each listed image by a model of its own.
const (
	// An image in the ledger is open; the kubelet may have an intent or a record for it.
	byLedger = "ledger"
	// An image that an open pull could have brought has a record without credentials.
	byJudging = "judging"
	// Nothing is known of an image, so it is not presumed preloaded.
	byNothing = "nothing known"
	// The runtime's complete list says which records go, not the collector's.
	byLists = "lists"
	// An image is one under all its spellings.
	bySpelling = "spellings"
	// Each pull ends by itself: its own success, an absent image, or time.
	byPulls = "pulls"
	// What was forgotten opens nothing (judge_forgetting_test.go).
	byForgetting = "forgetting"
)

var closedRules = []string{byLedger, byJudging, byNothing, byLists, bySpelling, byPulls, byForgetting}

type closedCount struct{ stored, answers int }

// evidence is what our store knows beside the records.
type evidence struct {
	ledger map[string]string // the source of each entry
	closed map[string]string // records that judging made: why
	names  map[string][]string
	pulls  []waybill.UnresolvedPull
}

type closedRun struct {
	kubelet, closed *contender
	options         store.Options
	stored          [2]state          // the kubelet's, ours: after the latest step
	known           evidence          // ours, likewise
	records         map[string]string // differing now: by which rule
	intents         map[string]string
	onNode          map[string]bool   // refs, at the latest step
	brought         map[string]bool   // of those: nobody but a pull brought them
	begun           map[string]bool   // images that were pulled in this history
	unprotected     map[string]bool   // images whose pulls were ended by a word of nobody who began one
	listed          map[string]bool   // plain spellings that lists had
	former          map[string]string // of the last list: the ID before, by the ID
	image           map[string]string // spelling to the ID of its image
	seen            map[string]*closedCount
	proofs          *proofs
	left            []waybill.UnresolvedPull // ended, with intents in image_manager/ until a list tells the image's ID
	directory       string
	swaps           int // how often a kubelet without waybill refused what only a pull brought
}

func newClosedRun(directory string, seed uint64, seen map[string]*closedCount) *closedRun {
	// These rules do not tell of what is remembered of images that are gone: tests/model does.
	options := store.Options{Settings: waybill.Settings{Mode: waybill.ModeStrict, ShortNamesAnywhere: new(seed%2 == 0)}}
	options.Evidence = &store.Evidence{GraceSeconds: 30, WindowSeconds: 8 * 60}
	return &closedRun{
		kubelet: kubeletOverFiles(filepath.Join(directory, "files")),
		closed:  ourManager(filepath.Join(directory, "closed"), options),
		options: options, onNode: map[string]bool{}, brought: map[string]bool{}, unprotected: map[string]bool{}, begun: map[string]bool{},
		listed: map[string]bool{}, image: map[string]string{}, seen: seen, proofs: newProofs(), directory: directory,
	}
}

// imageName is the image name, or "" if the string does not parse.
func imageName(image string) string {
	return parsedImage(image).Name
}

var parsedImages sync.Map

// parsedImage has no name if the string does not parse, and is not full if it is ambiguous.
func parsedImage(image string) waybill.ParseImageAnswer {
	if parsed, known := parsedImages.Load(image); known {
		return parsed.(waybill.ParseImageAnswer)
	}
	parsed, err := store.Library.ParseImage(quiet, waybill.ParseImage{Image: image})
	if err != nil && !errors.Is(err, waybill.ErrInvalidArgument) {
		panic(err)
	}
	parsedImages.Store(image, parsed)
	return parsed
}

// plain is a ref as a store knows it: a digest without repository.
func plain(ref string) string {
	if _, digest, ok := strings.Cut(ref, "@"); ok {
		return digest
	}
	return ref
}

// imageOf is the ID of the image that a ref spells.
func (c *closedRun) imageOf(ref string) string {
	if id, there := c.image[plain(ref)]; there {
		return id
	}
	return plain(ref)
}

// otherSpelling says whether there is something under another spelling of the ref's image.
func (c *closedRun) otherSpelling(ref string, under map[string]string) bool {
	for other := range under {
		if other != ref && c.imageOf(other) == c.imageOf(ref) {
			return true
		}
	}
	return false
}

// note keeps the truth: what came to the node, and by what.
func (c *closedRun) note(s step) {
	byPull := map[string]bool{}
	switch s.what {
	case pulled:
		byPull[plain(s.id)] = true
		if !isImageID(s.ref) {
			c.left = append(c.left, waybill.UnresolvedPull{Image: s.image})
		}
	case intent:
		c.begun[s.image] = true
	}
	before := c.onNode
	c.onNode = map[string]bool{}
	for _, image := range s.onNode {
		ref := plain(image.ID)
		c.onNode[ref] = true
		if !before[ref] {
			stray, is := s.strays[image.ID]
			c.brought[ref] = byPull[ref] || is && c.begun[stray]
		}
	}
	maps.DeleteFunc(c.brought, func(ref string, _ bool) bool { return !c.onNode[ref] })
	switch s.what {
	case deleteRecord: // somebody's word that it is nobody's
		delete(c.brought, plain(s.ref))
	case deleteIntent:
		c.unprotected[normalised(s.image)] = true
	case pulled, failed:
		if s.pull == 0 || !slices.ContainsFunc(c.known.pulls, func(pull waybill.UnresolvedPull) bool {
			return pull.Image == s.image && pull.State == waybill.StateRunning
		}) {
			c.unprotected[normalised(s.image)] = true
		}
	}
}

// learn follows the spellings of the images that the runtime listed.
func (c *closedRun) learn(images []kubecontainer.Image) {
	owners := map[string]map[string]bool{}
	for _, image := range images {
		for _, spelling := range append([]string{image.ID}, image.RepoDigests...) {
			if owners[plain(spelling)] == nil {
				owners[plain(spelling)] = map[string]bool{}
			}
			owners[plain(spelling)][plain(image.ID)] = true
			c.listed[plain(spelling)] = true
		}
	}
	for spelling, ids := range owners {
		delete(c.image, spelling)
		for id := range ids {
			if len(ids) == 1 {
				c.image[spelling] = id
			}
		}
	}
}

var imageID = regexp.MustCompile("^(sha256:)?[0-9a-f]{64}$")

// couldGive is what a pull may have given an image as a name.
func (c *closedRun) couldGive(image, name string) bool {
	if imageID.MatchString(image) {
		return false // no runtime pulls by ID
	}
	parsed := parsedImage(image)
	host, _, slash := strings.Cut(parsed.Name, "/")
	hasHost := slash && (strings.ContainsAny(host, ".:") || host == "localhost")
	if parsed.Full == "" || !hasHost && *c.options.Settings.ShortNamesAnywhere {
		return true
	}
	if repository(image) != repository(name) {
		return false
	}
	given := parsedImage(name)
	if given.Digest != "" || given.Tag == "" {
		return true // of any digest; and a name with neither may stand for any
	}
	tag := parsed.Tag
	if tag == "" {
		tag = "latest"
	}
	return parsed.Digest == "" && tag == given.Tag
}

// mayBePulled says whether all names of an image may have come from open pulls, or from pulls whose
// image no list has: those with a record of a ref that is not in `placed`. nil: records don't count.
func (c *closedRun) mayBePulled(image kubecontainer.Image, known evidence, placed map[string]bool) bool {
	for _, name := range slices.Concat(image.RepoTags, image.RepoDigests) {
		if parsedImage(name).Full == "" {
			continue
		}
		given := slices.ContainsFunc(known.pulls, func(pull waybill.UnresolvedPull) bool { return pull.AnyImage || c.couldGive(pull.Image, name) })
		for ref, names := range known.names {
			if given || placed == nil || placed[plain(ref)] || known.closed[plain(ref)] != "" {
				continue
			}
			// A name that is none tells nothing. Without one only its ref tells the repository, or nothing does.
			names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return parsedImage(n).Full == "" })
			if len(names) == 0 && imageName(ref) != "" && strings.Contains(ref, "@") {
				names = []string{ref}
			}
			given = len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return repository(n) == repository(name) })
		}
		if !given {
			return false
		}
	}
	return true
}

// formerly returns the ID under which the runtime listed the image before, if it lists it by another
// now; "?" where two images had one of its digests.
func (c *closedRun) formerly(image kubecontainer.Image) string {
	for _, spelling := range append([]string{image.ID}, image.RepoDigests...) {
		id, known := c.image[plain(spelling)]
		switch {
		case known && id != plain(image.ID) && !c.onNode[id]:
			return id
		case !known && c.listed[plain(spelling)]:
			return "?"
		}
	}
	return ""
}

// judgements compares what became of each image that was judged with the model, and with the truth.
func (c *closedRun) judgements(s step, before, now evidence) string {
	for ref, source := range now.ledger {
		at := slices.IndexFunc(s.onNode, func(image kubecontainer.Image) bool { return plain(image.ID) == ref })
		placed := c.listed
		if source == "unconfirmed" {
			placed = nil
		}
		switch {
		case before.ledger[ref] != "" || at >= 0 && before.ledger[c.former[ref]] != "":
		case at < 0:
			return fmt.Sprintf("%q entered the ledger, but the runtime does not have it", ref)
		case c.mayBePulled(s.onNode[at], before, placed):
			return fmt.Sprintf("%q entered the ledger, but a pull may have brought it: %+v", ref, before.pulls)
		case c.brought[ref] && !slices.ContainsFunc(s.onNode[at].RepoTags, func(name string) bool { return c.unprotected[normalised(name)] }) &&
			!slices.ContainsFunc(s.onNode[at].RepoDigests, func(name string) bool { return c.unprotected[normalised(name)] }):
			return fmt.Sprintf("%q entered the ledger, but a pull brought it", ref)
		}
	}
	for ref, because := range now.closed {
		at := slices.IndexFunc(s.onNode, func(image kubecontainer.Image) bool { return plain(image.ID) == ref })
		switch {
		case before.closed[ref] != "" || at >= 0 && c.former[ref] != "":
		case because == "waybill kept it closed for a kubelet without waybill" || because == "the kubelet has a record of it, and waybill's was removed":
			// By a file of ours that no list has swept away yet.
		case at < 0:
			return fmt.Sprintf("%q was closed, but the runtime does not have it", ref)
		case strings.Contains(because, "a digest in common") && slices.ContainsFunc(s.onNode, func(other kubecontainer.Image) bool {
			return plain(other.ID) != ref && slices.ContainsFunc(s.onNode[at].RepoDigests, func(digest string) bool {
				return plain(digest) == plain(other.ID) || slices.ContainsFunc(other.RepoDigests, func(its string) bool { return plain(its) == plain(digest) })
			})
		}):
			// A pull of that digest may have brought either.
		case s.what == restart && c.mayBePulled(s.onNode[at], evidence{pulls: slices.Concat(before.pulls, c.left), closed: before.closed, names: before.names}, c.onNode):
		case !c.mayBePulled(s.onNode[at], before, c.onNode): // lists before this one may be forgotten
			return fmt.Sprintf("%q was closed (%s), but no pull may have brought it: %+v", ref, because, before.pulls)
		}
	}
	return ""
}

// ruleOfRecord is the rule that made a record differ in a step, or "".
func (c *closedRun) ruleOfRecord(s step, ref string, before [2]state, asked bool) string {
	_, kubelets := c.stored[0].records[ref]
	_, ours := c.stored[1].records[ref]
	_, kubeletsBefore := before[0].records[ref]
	_, oursBefore := before[1].records[ref]
	switch {
	case ours && c.known.closed[plain(ref)] != "":
		return byJudging
	case s.what == decide && s.ref == ref && c.inLedger(ref):
		return byLedger // so the record was not asked, and no credential written back
	case c.otherSpelling(ref, before[1].records) || c.otherSpelling(ref, c.stored[1].records) || c.otherSpelling(ref, map[string]string{s.ref: ""}):
		return bySpelling
	case s.what == prune && ours && !kubelets:
		return byLists // the collector's list left it out
	case asked && kubelets && !ours && oursBefore && !c.onNode[plain(ref)]:
		return byLists
	case s.what == restart && kubelets && !kubeletsBefore && !ours && !s.noList:
		// The kubelet replays an intent: for us it is an open pull, and the image may be known otherwise.
		return byPulls
	}
	if record, _, err := c.closed.accessor.GetImagePulledRecord(ref); c.proofs.any && kubelets && ours && err == nil && c.proofs.holds(record) {
		return byForgetting
	}
	return ""
}

func (c *closedRun) ruleOfIntent(s step, image string, asked bool) string {
	_, ours := c.stored[1].intents[image]
	ended := s.image == image && (s.what == failed || s.what == pulled)
	if ours {
		if ended || s.what == restart {
			return byPulls // of several one ended, or it may have brought something
		}
		return ""
	}
	if ended || asked {
		return byPulls // it can bring nothing more
	}
	return ""
}

// ruleOfAnswer is the rule that made an answer differ.
func (c *closedRun) ruleOfAnswer(s step, got answer, asked bool) string {
	known := c.inLedger(s.ref)
	if known && !got.pull {
		return byLedger
	}
	if rule, differs := c.records[s.ref]; differs {
		return rule
	}
	if _, recorded := c.stored[1].records[s.ref]; !recorded {
		switch {
		case c.otherSpelling(s.ref, c.stored[1].records):
			return bySpelling
		case !known && asked && c.isListed(s.ref, s.onNode):
			return "" // so it was judged
		case !known && got.pull:
			return byNothing
		}
	}
	if got.pull && slices.ContainsFunc(s.secrets, c.proofs.forgotHash) {
		return byForgetting // the kubelet opens it by the Secret's coordinates
	}
	return c.intents[s.image]
}

// isListed says whether a ref spells one image of a list.
func (c *closedRun) isListed(ref string, images []kubecontainer.Image) bool {
	return slices.ContainsFunc(images, func(image kubecontainer.Image) bool {
		spellings := append([]string{image.ID}, image.RepoDigests...)
		return c.image[plain(ref)] == plain(image.ID) && slices.ContainsFunc(spellings, func(spelling string) bool { return plain(spelling) == plain(ref) })
	})
}

func (c *closedRun) inLedger(ref string) bool {
	for entry := range c.known.ledger {
		if c.imageOf(entry) == c.imageOf(ref) {
			return true
		}
	}
	return false
}

// kubeletIsFull says whether a credential opened our image, which proofs judge, and the kubelet refused
// the pod since its own record has too many Secrets: then a Secret's coordinates alone no longer match.
// Ours has fewer, since judging made it anew.
func (c *closedRun) kubeletIsFull(s step, got answer) bool {
	record, _, err := c.kubelet.accessor.GetImagePulledRecord(s.ref)
	if err != nil || record == nil || got.labels[1] == 0 {
		return false
	}
	known := record.CredentialMapping[imageName(s.image)].KubernetesSecrets
	return len(known) >= 100 && slices.ContainsFunc(known, func(one kubeletconfig.ImagePullSecret) bool {
		return slices.ContainsFunc(s.secrets, func(shown kubeletconfig.ImagePullSecret) bool {
			return one.UID == shown.UID && one.Namespace == shown.Namespace && one.Name == shown.Name
		})
	})
}

func (c *closedRun) look() (found evidence, err error) {
	found = evidence{ledger: map[string]string{}, closed: map[string]string{}, names: map[string][]string{}}
	known, err := c.closed.store.ListImages(quiet, waybill.ListImages{})
	if err != nil {
		return found, err
	}
	for _, entry := range known.Preloaded {
		found.ledger[plain(entry.ImageRef)] = entry.Source
	}
	for _, record := range known.Records {
		if record.ClosedBecause != "" {
			found.closed[plain(record.ImageRef)] = record.ClosedBecause
		}
		found.names[record.ImageRef] = slices.Collect(maps.Keys(record.Credentials))
	}
	pulls, err := c.closed.store.ListPulls(quiet, waybill.ListPulls{})
	found.pulls = pulls.Pulls
	return found, err
}

// play does one step on both, and returns the differences that no rule explains.
func (c *closedRun) play(s step) string {
	time.Sleep(s.after)
	before, knownBefore := c.stored, c.known
	c.note(s)
	listedBefore := c.closed.runtime.listed
	c.proofs.before(s)
	want, got := c.kubelet.do(s), c.closed.do(s)
	if c.closed.store == nil {
		return fmt.Sprintf("it does not open: %v", got.err)
	}
	if s.what == drawTruth || s.forgetting != nil {
		if err := c.proofs.act(s, c.closed.store); err != nil {
			return err.Error()
		}
	}
	if found := c.proofs.judge(s, got); found != "" {
		return fmt.Sprintf("%s: %+v", found, got)
	}
	asked := c.closed.runtime.listed > listedBefore && c.closed.runtime.err == nil && len(s.onNode) > 0
	var err error
	if c.known, err = c.look(); err != nil {
		return err.Error()
	}
	if asked {
		c.former = map[string]string{}
		for _, image := range s.onNode {
			c.former[plain(image.ID)] = c.formerly(image)
		}
		c.learn(s.onNode) // before it is judged
	}
	if found := c.judgements(s, knownBefore, c.known); found != "" {
		return found
	}
	if asked {
		c.left = nil
	}
	for i, contender := range []*contender{c.kubelet, c.closed} {
		stored, err := contender.state(false)
		if err != nil {
			return fmt.Sprintf("%s: %v", contender.name, err)
		}
		c.stored[i] = stored
	}
	records, difference := c.explain("record", c.records, differingKeys(c.stored[0].records, c.stored[1].records), func(ref string) string {
		return c.ruleOfRecord(s, ref, before, asked)
	})
	if difference != "" {
		return difference
	}
	intents, difference := c.explain("intent", c.intents, differingKeys(c.stored[0].intents, c.stored[1].intents), func(image string) string {
		return c.ruleOfIntent(s, image, asked)
	})
	if difference != "" {
		return difference
	}
	want.intents, want.records = -1, -1 // the stores are compared instead
	if d := differenceOf(c.kubelet.name, want, c.closed.name, got); d != "" {
		rule := ""
		if s.what == decide {
			for _, r := range []map[string]string{c.records, records} {
				c.records = r
				if rule == "" {
					rule = c.ruleOfAnswer(s, got, asked)
				}
			}
			if rule == "" {
				return "no rule explains the answer\n" + d
			}
			if want.pull && !got.pull && rule != byLedger && rule != byLists && rule != bySpelling && rule != byForgetting && !(rule == byJudging && c.kubeletIsFull(s, got)) {
				return fmt.Sprintf("%s opened an image that the kubelet keeps closed\n%s", rule, d)
			}
			c.seen[rule].answers++
		} else {
			return "no rule explains the outcome\n" + d
		}
	}
	c.records, c.intents = records, intents
	return ""
}

// swap starts a kubelet without waybill on what ours left in its directory, without an export: what only
// a pull brought must not pass for preloaded, unless ours takes it for that, too, by what it was told:
// the history ends there.
func (c *closedRun) swap(s step) (found string, over bool) {
	directory := filepath.Join(c.directory, fmt.Sprintf("swapped-%d", c.swaps))
	defer os.RemoveAll(directory)
	if err := os.CopyFS(directory, os.DirFS(filepath.Join(c.directory, "closed-kubelet"))); err != nil {
		return err.Error(), true
	}
	stock := kubeletOverFiles(directory)
	if a := stock.do(step{what: restart, policy: kubeletconfig.NeverVerifyPreloadedImages, onNode: s.onNode}); a.failed {
		return a.err.Error(), true
	}
	for _, image := range s.onNode {
		isUnprotected := func(name string) bool { return c.unprotected[normalised(name)] }
		if !c.brought[plain(image.ID)] || slices.ContainsFunc(slices.Concat(image.RepoTags, image.RepoDigests), isUnprotected) {
			continue
		}
		names := slices.DeleteFunc(slices.Concat(image.RepoTags, image.RepoDigests), func(name string) bool { return imageName(name) == "" })
		if len(names) == 0 {
			continue // a kubelet makes nothing of such intents, and no runtime lists such names
		}
		for _, name := range append(names, image.ID) {
			ask := step{what: decide, image: name, ref: image.ID, onNode: s.onNode}
			if a := stock.do(ask); !a.pull {
				if ours := c.closed.do(ask); !ours.pull {
					return "", true
				}
				return fmt.Sprintf("a kubelet without waybill opens %q as %q, which a pull brought (of %q, if nobody recorded it); ours knows %+v",
					image.ID, name, s.strays[image.ID], c.known), true
			}
			c.swaps++
		}
	}
	return "", false
}

func (c *closedRun) explain(what string, known map[string]string, differing []string, ruleOf func(string) string) (map[string]string, string) {
	explained := map[string]string{}
	for _, key := range differing {
		rule, already := ruleOf(key), false
		if rule == "" {
			rule, already = known[key] // as before
		}
		if rule == "" {
			return nil, fmt.Sprintf("no rule explains the %s of %q\n  %s: %q\n  %s: %q", what, key,
				c.kubelet.name, c.stored[0].of(what)[key], c.closed.name, c.stored[1].of(what)[key])
		}
		if !already && rule != known[key] {
			c.seen[rule].stored++
		}
		explained[key] = rule
	}
	return explained, ""
}

func (s state) of(what string) map[string]string {
	if what == "record" {
		return s.records
	}
	return s.intents
}

func TestClosedRulesExplainEachDifference(t *testing.T) {
	scratch, seen, saw := scratchDir(t), map[string]*closedCount{}, map[string]int{}
	for _, rule := range closedRules {
		seen[rule] = &closedCount{}
	}
	judge(t, newSeed(), 5_000, stepsOfHistory,
		func(seed uint64) []step { return withForgetting(seed, makeHistory(seed, stepsOfHistory)) }, 20*time.Second,
		func(seed uint64, history []step) (played int, difference string) {
			difference = inFakeTime(t, scratch, func(directory string) string {
				run := newClosedRun(directory, seed, seen)
				defer func() { saw["refused after a swap"] += run.swaps; run.closed.stop() }()
				run.proofs.counts = saw
				for i, s := range history {
					played = i + 1
					if found := run.play(s); found != "" {
						return found
					}
					if i%8 == 0 || s.what == restart {
						if found, over := run.swap(s); over {
							return found
						}
					}
				}
				return ""
			})
			return played, difference
		}, tellSteps)
	t.Logf("%v", saw)
	for _, rule := range closedRules {
		t.Logf("%s: %d differences stored, %d answers", rule, seen[rule].stored, seen[rule].answers)
		if seen[rule].answers+seen[rule].stored == 0 && wholeRun() {
			t.Errorf("%s never mattered", rule)
		}
	}
}
