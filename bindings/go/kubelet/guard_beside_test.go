package kubelet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// --- the guard

// tell asks the guard for something. What it could not do is wrong: nothing here gives it a reason.
func (w *guardWorld) tell(what string, order map[string]any) (answer driverAnswer, ok bool) {
	if w.wrong != "" {
		return answer, false
	}
	life := 0
	if w.kubelet != nil {
		life = w.kubelet.number
	}
	had := []string{}
	if w.kubelet != nil {
		for repository := range w.kubelet.mayHaveHad {
			had = append(had, repository, strings.TrimPrefix(repository, "docker.io/library/"))
		}
	}
	now := map[string]any{"mayHaveHad": had, "seconds": time.Now().Unix(), "boot": w.boot, "bootSeconds": int(time.Since(w.booted).Seconds()), "life": life}
	if _, err := w.driver.do("time", now); err != nil {
		w.failed(err)
		return answer, false
	}
	dies := w.dieAfter > 0
	if dies {
		order = maps.Clone(order)
		if order == nil {
			order = map[string]any{}
		}
		order["dieAfter"], w.dieAfter = w.dieAfter, 0
	}
	answer, err := w.driver.do(what, order)
	if err != nil && dies {
		w.guardDies()
		return answer, false
	}
	for _, line := range answer.Log {
		w.say("  log: %s", w.short(line))
		if strings.HasPrefix(line, "cannot ") && err == nil {
			err = fmt.Errorf("the guard says: %s", line)
		}
	}
	if err != nil {
		w.failed(err)
	}
	return answer, err == nil
}

func (w *guardWorld) startGuard(runtime bool) {
	if w.driver.command == nil {
		if err := w.driver.start(); err != nil {
			w.failed(err)
			return
		}
	}
	images, recorded := w.runtimeList(), w.recordedImages()
	answer, ok := w.tell("start", map[string]any{"runtime": runtime, "images": images, "maxAge": int(w.maxAge.Seconds())})
	if !ok {
		return
	}
	w.guard, w.began, w.drawn = true, false, nil
	w.guards++
	if answer.Status.AfterGap {
		w.saw[sawGuardGap]++
	}
	w.count(answer)
	if !runtime {
		w.gap = true // no list tells which records are of images that are gone, so they may be of any
	} else {
		w.begunAt = time.Now()
		w.listJudged(images, recorded)
	}
}

func (w *guardWorld) count(answer driverAnswer) {
	w.saw[sawGuardHole] += answer.Status.Holes["record-removed"]
	w.saw[sawGuardIntent] += answer.Status.Holes["intent-dropped"] + answer.Status.Holes["intent-lost"]
	w.saw[sawGuardClosed] += answer.Status.Holes["unrecorded-image"]
	w.saw[sawGuardMoved] += answer.Status.Holes["record-stale"]
}

// missedSomething says whether the guard may take what it sees first for what came in a gap: the next
// list after one closes what is not known, and so does, for the window, the open pull of anything.
func (w *guardWorld) missedSomething() bool {
	return w.gap || !w.gapClosed.IsZero()
}

// recordedImages are those that have a file in pulled/.
func (w *guardWorld) recordedImages() map[string]bool {
	recorded := map[string]bool{}
	for _, c := range w.contents {
		if _, err := os.Stat(w.recordFile(c.id)); err == nil {
			recorded[c.id] = true
		}
	}
	return recorded
}

// listJudged: recorded are the images that had a record before.
func (w *guardWorld) listJudged(images []listedImage, recorded map[string]bool) {
	for _, image := range images {
		delete(w.unlisted, image.ID)
		nameless := len(image.RepoTags)+len(image.RepoDigests) == 0 // EVIDENCE, rule 7: nothing tells where it came from
		if w.byHand[image.ID] && !w.known[image.ID] && (nameless || w.missedSomething()) {
			w.shut[image.ID] = true
		}
	}
	isKnown := func(image listedImage) bool { return recorded[image.ID] || w.known[image.ID] }
	isNew := func(image listedImage) bool {
		return len(image.RepoTags)+len(image.RepoDigests) == 0 && !w.known[image.ID]
	}
	// A list of nothing that the guard knows may be of a disk that is not mounted: it ends no gap and no pull, and in
	// a gap leaves the ledger as it was. So does one with an image whose names may still come: it is not whole.
	tells := slices.ContainsFunc(images, isKnown)
	leavesLedger := w.gap && !tells || slices.ContainsFunc(images, isNew)
	switch {
	case !tells:
	case w.gap:
		w.gap, w.gapClosed = false, time.Now()
	case w.begunAt.Sub(w.gapClosed) > guardWindow+time.Second:
		w.gapClosed = time.Time{}
	}
	for _, c := range w.contents {
		if !slices.ContainsFunc(images, func(image listedImage) bool { return image.ID == c.id }) {
			if !leavesLedger {
				delete(w.wasByHand, c.id)
			}
			delete(w.followed, c.id)
			w.forgot[c.id] = true
		} else {
			delete(w.forgot, c.id)
		}
	}
}

// nowFollowed notes that the guard has seen everything that the kubelet wrote.
func (w *guardWorld) nowFollowed() {
	clear(w.unseen)
	clear(w.intents)
	clear(w.mayBeTaken)
	w.troublesSeen()
	if w.kubelet == nil {
		return
	}
	for _, pull := range w.kubelet.pulls {
		if pull.read = true; pull.by == 0 {
			pull.by = w.guards
		}
	}
	for _, id := range w.nodeIDs() {
		delete(w.followed, id)
		if record, there, err := w.kubelet.files.GetImagePulledRecord(id); err == nil && there && !w.forgot[id] {
			w.followed[id] = record
		}
		if content, err := os.ReadFile(w.recordFile(id)); err == nil && (w.copies[id] == nil || len(w.happened)%4 == 0) {
			w.copies[id] = content
		}
	}
}

func (w *guardWorld) recordFile(id string) string {
	return filepath.Join(w.driver.kubelet(), "image_manager", "pulled", fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(id))))
}

func (w *guardWorld) guardEvents(*rand.Rand) {
	if !w.guard {
		return
	}
	w.say("")
	kept := maps.Clone(w.followed)
	if _, ok := w.tell("events", nil); !ok {
		return
	}
	w.nowFollowed()
	if w.kubelet != nil && w.kubelet.seesFiles { // a record that was removed is back before any list
		w.checkSafe("after a removed record was seen", func(u use) bool { return kept[u.id] != nil })
	}
}

func (w *guardWorld) compare(*rand.Rand) {
	if !w.guard {
		return
	}
	w.say("")
	w.tell("compare", nil)
}

func (w *guardWorld) beginList(*rand.Rand) {
	if !w.guard || w.began {
		return
	}
	w.say("")
	_, w.began = w.tell("begin", nil)
	w.drawn, w.begunAt = nil, time.Now()
}

func (w *guardWorld) drawList(*rand.Rand) {
	if w.began && w.drawn == nil {
		w.say("")
		w.drawn = w.runtimeList()
	}
}

func (w *guardWorld) takeList(*rand.Rand) {
	if !w.guard || !w.began {
		return
	}
	if w.drawn == nil {
		w.drawn = w.runtimeList()
	}
	w.say("%s", w.short(fmt.Sprint(w.drawn)))
	recorded := w.recordedImages()
	answer, ok := w.tell("list", map[string]any{"images": w.drawn})
	if ok {
		w.count(answer)
		w.listJudged(w.drawn, recorded)
		w.nowFollowed()
	}
	w.began, w.drawn = false, nil
}

// quiet: the guard has seen all that happened, and a list of now.
func (w *guardWorld) quiet(r *rand.Rand) {
	if !w.guard {
		return
	}
	w.guardEvents(r)
	w.began = false
	w.beginList(r)
	w.takeList(r)
	// What a kubelet that started without a guard has in memory stays, until it starts again.
	if w.kubelet != nil && w.kubelet.seesFiles {
		w.checkSafe("at a quiet point", anyUse)
		w.checkByHand()
	}
	w.latePullsSeen()
}

// latePullsSeen: from now on the guard keeps intents of the pulls that may bring something late, but for strings
// that name an image that came by hand: that is open, and an intent would close it.
func (w *guardWorld) latePullsSeen() {
	for i, late := range w.late {
		w.late[i].isSeen = late.read // else it knows only that there was some pull
		for _, id := range w.nodeIDs() {
			if (w.byHand[id] || w.wasByHand[id]) && slices.Contains(w.spellings(id), late.image) {
				w.late[i].isSeen = false
			}
		}
	}
}

func (w *guardWorld) stopGuard(*rand.Rand) {
	if !w.calm {
		w.stopInOrder()
	}
}

func (w *guardWorld) stopInOrder() {
	if !w.guard {
		return
	}
	w.say("in order")
	if _, ok := w.tell("stop", nil); ok {
		w.nowFollowed()
	}
	w.guard, w.began = false, false
	if w.kubelet != nil {
		w.kubelet.seesFiles = false // its marker is gone
	}
	// Kernels before 6.13 count changes of a folder in ticks.
	_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 10_000_000}, nil)
}

func (w *guardWorld) killGuard(*rand.Rand) {
	if !w.guard || w.calm {
		return
	}
	w.say("")
	w.guardDies()
}

func (w *guardWorld) guardDies() {
	w.driver.kill()
	maps.Copy(w.taken, w.mayBeTaken)
	w.guard, w.began, w.gap = false, false, true
}

// killAmid kills the guard between two acts of what it does next.
func (w *guardWorld) killAmid(r *rand.Rand) {
	if !w.guard || w.calm {
		return
	}
	what := pick(r, []string{"events", "compare"})
	w.dieAfter = 1 + r.IntN(8)
	w.say("at act %d of %s", w.dieAfter, what)
	w.tell(what, nil)
}

func (w *guardWorld) startBeside(*rand.Rand) {
	if w.guard || w.kubelet == nil {
		return
	}
	w.say("")
	w.startGuard(true)
	w.nowFollowed()
}

// guardedStart is what the whole is about: the guard's first phase, then a kubelet.
func (w *guardWorld) guardedStart(r *rand.Rand) {
	w.say("")
	if w.calm || r.IntN(2) == 0 {
		w.endLife()
	}
	if w.calm || r.IntN(2) == 0 {
		w.stopInOrder()
	} else {
		w.killGuard(r)
	}
	w.endLife()
	if !w.calm && r.IntN(4) == 0 {
		w.damage(r)
	}
	w.startAll(r)
}

func (w *guardWorld) startAll(r *rand.Rand) {
	runtime := r.IntN(10) > 0
	w.say("the guard starts, runtime %t, %s", runtime, w.short(fmt.Sprint(w.runtimeList())))
	if !w.calm && r.IntN(5) == 0 {
		w.dieAfter = 1 + r.IntN(20)
		w.say("it dies at act %d", w.dieAfter)
		w.startGuard(runtime)
	}
	w.dieAfter = 0
	if !w.guard {
		w.startGuard(runtime)
	}
	w.nowFollowed()
	w.startLife()
	if w.wrong != "" {
		return
	}
	w.checkKept(runtime)
	if runtime {
		w.checkSafe("after a guarded start", anyUse)
		w.checkAges()
		w.checkByHand()
	}
}

// damage does to the kubelet's files what a disk, a restored backup or a person does.
func (w *guardWorld) damage(r *rand.Rand) {
	ids := w.nodeIDs()
	if len(ids) == 0 {
		return
	}
	id, other := pick(r, ids), pick(r, ids)
	if w.planted[id] || w.planted[other] {
		return // copied to a file of root's own, what was planted would be a kubelet's word
	}
	path := w.recordFile(id)
	was, err := os.ReadFile(path)
	if err != nil {
		return
	}
	content, how := w.copies[id], "an older copy"
	switch r.IntN(5) {
	case 4:
		if w.followed[id] == nil || w.forgot[id] || w.unseen[id] {
			return
		}
		how = "an older record, of another node,"
		content = fmt.Appendf(nil, `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"1999-01-01T00:00:00Z",`+
			`"imageRef":%q,"credentialMapping":{%q:{"nodePodsAccessible":true}}}`+"\n", id, pick(r, w.content(id).repositories))
	case 0:
		content, how = nil, "nothing"
	case 1:
		content, how = []byte{}, "an empty file"
	case 2:
		content, _ = os.ReadFile(w.recordFile(other))
		how = "the record of " + w.short(other)
	}
	w.say("somebody puts %s in place of the record of %s", how, w.short(id))
	w.damaged = id
	if w.gap = true; string(was) != string(content) && (w.unseen[id] || w.forgot[id]) {
		w.lost[id] = true
	}
	if err = os.Remove(path); err == nil && content != nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		w.failed(err)
	}
}

// --- what must be

func anyUse(use) bool { return true }

// checkSafe: nobody may use what only a pull brought, and what they never proved anything for.
func (w *guardWorld) checkSafe(when string, which func(u use) bool) {
	if w.wrong != "" {
		return
	}
	w.eachUse(func(u use) {
		if w.wrong == "" && which(u) && !w.inMemory(u) && !w.mustPull(u) && !w.mayUse(u) {
			w.wrong = w.short(fmt.Sprintf("%s %s may use %s by %s, and never proved anything", when, u.tenant, u.id, u.image))
		}
	})
}

// checkPullsInFlight: the string of what is being pulled opens nothing.
func (w *guardWorld) checkPullsInFlight() {
	for _, pull := range w.pulls() {
		w.checkSafe("while it is pulled", func(u use) bool { return u.image == pull.image })
	}
}

// checkByHand: what came by hand, and what nobody pulls, is open; and stays so.
func (w *guardWorld) checkByHand() {
	if w.wrong != "" {
		return
	}
	for _, id := range w.nodeIDs() {
		if !w.byHand[id] || w.planted[id] || w.kubelet.amid { // a planted file may close it for one kubelet
			continue
		}
		isOpen := !w.mustPull(use{id, id, "nobody"})
		neverPulled := w.content(id).repositories[0] == repositoryByHand
		switch {
		case isOpen:
			w.saw[sawGuardByHand]++
			w.known[id] = true
			delete(w.shut, id)
		case !neverPulled: // EVIDENCE: an import leaves the same evidence as a late pull of that tag
		case w.known[id]:
			w.wrong = fmt.Sprintf("%s came by hand, was open, and is closed", w.short(id))
		case !w.shut[id]: // else it came in a gap, or while a pull of anything is open; or it had no name
			w.wrong = fmt.Sprintf("%s came by hand, and is closed", w.short(id))
		}
	}
}

// checkKept: who could use an image at the end of the kubelet's latest life still can.
func (w *guardWorld) checkKept(runtime bool) {
	for _, id := range w.nodeIDs() {
		for _, image := range w.spellings(id) {
			for _, t := range w.tenants {
				u := use{id, image, t.name}
				byRecord, could := w.usable[u]
				if w.wrong != "" || !could || !w.mayUse(u) {
					continue
				}
				if !w.mustPull(u) {
					w.saw[sawGuardKept]++
					continue
				}
				switch {
				case w.planted[id] || w.mayNotCount(u):
				case byRecord && (w.taken[imageAndName{id, imageName(image)}] || w.rowLost):
				case byRecord && w.removed[id]:
					// The store forgets an image that is gone. What the kubelet kept of it counts again once it is
					// back, but not while a pull of its repository runs, and not if its file is lost before that.
				case byRecord && w.lost[id]:
					// The kubelet's newest word, which no guard had seen when it was lost.
				case !byRecord && !w.known[id] && !t.matches(w.followed[id], image):
					// Open only because nothing was known of it, neither by a record nor by the ledger.
				case !byRecord && !runtime:
					// Without a list the guard can't tell which pulls name an image of the ledger, so their intents
					// stay; and the kubelet's replay closes what they name.
				case byRecord && !runtime && (w.byHand[id] || w.wasByHand[id]):
					// Likewise; and of an image of the ledger no record is put back: it goes while no kubelet runs.
				default:
					w.wrong = w.short(fmt.Sprintf("%s could use %s by %s before (by a record: %t), and can't after a guarded start", u.tenant, u.id, u.image, byRecord))
				}
			}
		}
	}
}

// --- the power

// powerCut leaves of the kubelet's files what is on the disk. Each change that nobody synced is there or
// not, and a file whose content nobody synced may be empty.
func (w *guardWorld) powerCut(r *rand.Rand) {
	if w.calm {
		return
	}
	w.say("")
	w.endLife()
	w.driver.kill()
	maps.Copy(w.taken, w.mayBeTaken)
	w.gap = w.gap || w.guard
	w.guard, w.began = false, false
	w.late = nil // the runtime's pulls have ended with it
	for _, folder := range []string{"pulled", "pulling"} {
		if err := w.loseUnsynced(folder, r); err != nil {
			w.failed(err)
			return
		}
	}
	maps.Copy(w.lost, w.unseen)
	time.Sleep(time.Duration(10+r.IntN(100)) * time.Second)
	w.boot++
	w.booted = time.Now()
	w.clockIsLost()
	if r.IntN(8) == 0 {
		w.say("the kubelet starts without a guard")
		w.startLife()
		return
	}
	w.startAll(r)
}

func (w *guardWorld) loseUnsynced(folder string, r *rand.Rand) error {
	path := filepath.Join(w.driver.kubelet(), "image_manager", folder)
	synced := map[string]string{}
	if text, err := os.ReadFile(filepath.Join(w.driver.shadow(), folder+".json")); err == nil {
		if err := json.Unmarshal(text, &synced); err != nil {
			return err
		}
	}
	now := map[string]string{}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		now[entry.Name()] = strconv.FormatUint(stat.Ino, 10) + "-" + strconv.FormatInt(stat.Mtim.Sec, 10) + "." + strconv.FormatInt(stat.Mtim.Nsec, 10)
	}
	names := slices.Sorted(maps.Keys(now))
	for name := range synced {
		if _, there := now[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		file := filepath.Join(path, name)
		was, isSynced := synced[name]
		is, there := now[name]
		_, err := os.Stat(filepath.Join(w.driver.shadow(), "content", is))
		hasContent := err == nil
		switch survives := was == is && isSynced == there || r.IntN(2) == 0; {
		case survives && (!there || hasContent || r.IntN(2) == 0):
		case survives:
			w.saw[sawGuardEmptied]++
			w.say("  %s/%s… is empty", folder, name[:14])
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return err
			}
		case !isSynced:
			w.saw[sawGuardLost]++
			w.say("  %s/%s… is lost", folder, name[:14])
			if err := os.Remove(file); err != nil {
				return err
			}
		default:
			w.say("  %s/%s… is what it was", folder, name[:14])
			before, _ := os.ReadFile(filepath.Join(w.driver.shadow(), "content", was)) // none: it is empty
			_ = os.Remove(file)
			if err := os.WriteFile(file, before, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
