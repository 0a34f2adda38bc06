package kubelet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// What else befalls a node beside a guard: credentials of its own, proofs that age, files that somebody
// else writes, rows that the disk loses.

type imageAndName [2]string

// troubles is what the world knows of these.
type troubles struct {
	nodeHas map[string]int // by repository: the group whose credential the node has
	maxAge  time.Duration  // 0: proofs don't age

	proofSeen map[proof]time.Time // when the guard saw it last
	freshly   map[proof]bool      // since it looked
	doubted   map[proof]bool      // somebody had planted a file before

	served        map[imageAndName]bool // the node's credentials brought it, once
	servedUnseen  map[imageAndName]bool // likewise, and the guard has not looked since
	planted       map[string]bool       // images whose file somebody else wrote, once
	plantedUnseen map[string]bool
	rewritten     map[string]bool // a kubelet wrote such a file again before any look: limit U9
	rowLost       bool            // so the store is degraded, and believes no record that it does not know (R11)
}

func newTroubles(r *rand.Rand) troubles {
	t := troubles{
		nodeHas: map[string]int{}, proofSeen: map[proof]time.Time{}, freshly: map[proof]bool{}, doubted: map[proof]bool{},
		served: map[imageAndName]bool{}, servedUnseen: map[imageAndName]bool{}, planted: map[string]bool{}, plantedUnseen: map[string]bool{},
		rewritten: map[string]bool{},
	}
	if r.IntN(4) == 0 {
		t.maxAge = time.Duration(1+r.IntN(12)) * time.Hour
	}
	return t
}

// memory is what one kubelet may have in memory against the guard's will.
type memory struct {
	served     map[imageAndName]bool
	planted    map[string]bool
	amid       bool            // it began between two acts of the guard, and may have read too little
	mayHaveHad map[string]bool // repositories for which the node had credentials in its life
}

// newMemory is that of a kubelet that starts now. It reads files that the guard has not answered yet, and
// those of images that the last list lacked (U3); without a guard also what the power brought back.
func (w *guardWorld) newMemory() memory {
	m := memory{served: maps.Clone(w.servedUnseen), planted: maps.Clone(w.plantedUnseen), mayHaveHad: map[string]bool{}}
	for key := range w.served {
		if !w.guard || w.forgot[key[0]] {
			m.served[key] = true
		}
	}
	for id := range w.planted {
		if !w.guard || w.forgot[id] {
			m.planted[id] = true
		}
	}
	for repository := range w.nodeHas {
		m.mayHaveHad[repository] = true
	}
	return m
}

// nodeCredential comes to the node, or goes.
func (w *guardWorld) nodeCredential(r *rand.Rand) {
	repository := pick(r, w.repositories)
	if _, has := w.nodeHas[repository]; has {
		w.say("of %s goes", repository)
		delete(w.nodeHas, repository)
		return
	}
	w.nodeHas[repository] = r.IntN(2)
	w.say("of group %d for %s comes", w.nodeHas[repository], repository)
	if w.kubelet != nil {
		w.kubelet.mayHaveHad[repository] = true
	}
}

// isServed says whether the node's credentials bring what the pod's own do not.
func (w *guardWorld) isServed(repository string, by *tenant) bool {
	group, has := w.nodeHas[repository]
	return has && w.mayPullFrom(repository, group) && !w.mayPullFrom(repository, by.group)
}

// noteServed: every pod may use it (U8), unless the guard has a Secret on record for that name.
func (w *guardWorld) noteServed(pull *worldPull) {
	key := imageAndName{pull.id, imageName(pull.image)}
	w.served[key], w.servedUnseen[key], w.kubelet.served[key] = true, true, true
	w.saw[sawGuardServed]++
	if record := w.followed[pull.id]; record != nil {
		entry := record.CredentialMapping[key[1]]
		if len(entry.KubernetesSecrets)+len(entry.KubernetesServiceAccounts) > 0 {
			return
		}
	}
	w.prove(proof{pull.id, key[1], -1})
}

// plant puts a file that no kubelet wrote in the place of a record, and opens the image by it.
func (w *guardWorld) plant(r *rand.Rand) {
	ids := w.nodeIDs()
	if w.calm || len(ids) == 0 {
		return
	}
	id := pick(r, ids)
	path := w.recordFile(id)
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return
	}
	record := fmt.Appendf(nil, `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":%q,`+
		`"imageRef":%q,"credentialMapping":{%q:{"nodePodsAccessible":true}}}`+"\n", time.Now().UTC().Format(time.RFC3339), id, pick(r, w.content(id).repositories))
	elsewhere := filepath.Join(w.driver.directory, fmt.Sprintf("elsewhere-%d", len(w.happened)))
	_ = os.Remove(path)
	how := []string{"others may write it", "another link leads to it", "a symbolic link"}[r.IntN(3)]
	err := os.WriteFile(elsewhere, record, 0o600)
	if err == nil {
		switch how {
		case "others may write it":
			if err = os.WriteFile(path, record, 0o600); err == nil {
				err = os.Chmod(path, 0o666)
			}
		case "a symbolic link":
			err = os.Symlink(elsewhere, path)
		default:
			err = os.Link(elsewhere, path)
		}
	}
	if err != nil {
		w.failed(err)
		return
	}
	w.say("a record of %s: %s", w.short(id), how)
	w.saw[sawGuardPlanted]++
	w.planted[id], w.plantedUnseen[id] = true, true
	if w.kubelet != nil {
		w.kubelet.planted[id] = true
	}
	if w.gap = true; w.unseen[id] || w.forgot[id] {
		w.lost[id] = true
	}
}

// rewrote: the kubelet wrote a record, with whatever it has in memory.
func (w *guardWorld) rewrote(id string) {
	if w.kubelet == nil {
		return
	}
	for key := range w.kubelet.served {
		if key[0] == id {
			w.servedUnseen[key] = true
		}
	}
	if w.kubelet.planted[id] && w.plantedUnseen[id] {
		w.rewritten[id] = true
	}
}

// loseRow: the disk turns a bit of what the guard has in its table.
func (w *guardWorld) loseRow(r *rand.Rand) {
	if w.guard || w.wrong != "" {
		return
	}
	if w.driver.command == nil {
		if err := w.driver.start(); err != nil {
			w.failed(err)
			return
		}
	}
	w.say("")
	w.saw[sawGuardRowLost]++
	w.tell("lose", map[string]any{"row": r.IntN(100)})
	w.gap = true
	w.rowLost = true
	maps.Copy(w.taken, w.mayBeTaken)
	w.lateUnseen(func(latePull) bool { return true })
	for i := range w.late {
		w.late[i].read = false
	}
}

// startAmid: a kubelet begins between two acts of what the guard does.
func (w *guardWorld) startAmid(r *rand.Rand) {
	if !w.guard || w.calm {
		return
	}
	w.endLife()
	after := 1 + r.IntN(6)
	w.say("after act %d", after)
	w.driver.meanwhile = func() int {
		w.saw[sawGuardAmid]++
		w.startLife()
		w.kubelet.amid = true
		return w.kubelet.number
	}
	if _, ok := w.tell("compare", map[string]any{"waitAfter": after}); ok {
		w.nowFollowed()
	}
}

func (w *guardWorld) prove(p proof) {
	w.proven[p], w.freshly[p] = true, true
	w.doubted[p] = w.doubted[p] || len(w.planted) > 0
}

// troublesSeen: the guard has looked.
func (w *guardWorld) troublesSeen() {
	clear(w.servedUnseen)
	clear(w.plantedUnseen)
	for p := range w.freshly {
		w.proofSeen[p] = time.Now()
	}
	clear(w.freshly)
}

// clockIsLost: this world's clock says 2000, so only the time counts that the node ran. What it ran since the
// latest commit is lost with a boot.
func (w *guardWorld) clockIsLost() {
	for p := range w.proofSeen {
		w.proofSeen[p] = time.Now()
	}
}

// inMemory says whether a kubelet may go by what the guard can't take from it.
func (w *guardWorld) inMemory(u use) bool {
	return w.rewritten[u.id] || w.kubelet.planted[u.id] || w.kubelet.served[imageAndName{u.id, imageName(u.image)}]
}

// proofsOf are those that let it in.
func (w *guardWorld) proofsOf(u use) (some []proof) {
	name, t := imageName(u.image), w.tenant(u.tenant)
	for _, p := range []proof{{u.id, name, -1}, {u.id, name, t.group}} {
		if w.proven[p] {
			some = append(some, p)
		}
	}
	return some
}

// checkAges: a kubelet that starts beside a guard lets in nobody whose proofs are all too old.
func (w *guardWorld) checkAges() {
	if w.maxAge == 0 || w.wrong != "" {
		return
	}
	w.eachUse(func(u use) {
		if w.wrong != "" || w.byHand[u.id] || w.wasByHand[u.id] || w.inMemory(u) || w.mustPull(u) {
			return
		}
		for _, p := range w.proofsOf(u) {
			if seen, is := w.proofSeen[p]; !is || time.Since(seen) <= w.maxAge+2*time.Second {
				return
			}
		}
		w.wrong = w.short(fmt.Sprintf("%s may use %s by %s, and all it proved is older than %v", u.tenant, u.id, u.image, w.maxAge))
	})
	w.saw[sawGuardAged]++
}

// mayNotCount says whether what lets it in may count no more for the guard. Where proofs age, one counts
// only if the guard certainly saw its pull. A kubelet that read a planted file may have anything from it.
func (w *guardWorld) mayNotCount(u use) bool {
	return w.maxAge > 0 || slices.ContainsFunc(w.proofsOf(u), func(p proof) bool { return w.doubted[p] })
}
