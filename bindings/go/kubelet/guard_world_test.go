package kubelet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

// The histories must have provoked these cases, or the judge has judged little.
const (
	sawGuardGap     = "a gap"
	sawGuardClosed  = "an image that a pull brought unrecorded is closed"
	sawGuardKept    = "a credential is kept over a guarded start"
	sawGuardByHand  = "an image that came by hand is open"
	sawGuardLost    = "the power took a record"
	sawGuardEmptied = "the power left an empty file"
	sawGuardHole    = "a removed record was put back"
	sawGuardIntent  = "a dropped intent was put back"
	sawGuardMoved   = "a record was put back by an older copy"
	sawGuardWiped   = "the runtime's disk was another one"
	sawGuardServed  = "the node's own credentials brought an image"
	sawGuardPlanted = "somebody planted a record"
	sawGuardRowLost = "a row of the guard's was lost"
	sawGuardAmid    = "a kubelet began amid an answer"
	sawGuardAged    = "a kubelet started where proofs age"
)

var guardCases = []string{sawGuardGap, sawGuardClosed, sawGuardKept, sawGuardByHand, sawGuardLost, sawGuardEmptied,
	sawGuardHole, sawGuardIntent, sawGuardMoved, sawGuardWiped, sawGuardServed, sawGuardPlanted, sawGuardRowLost, sawGuardAged, sawGuardAmid}

const (
	repositoryOfA    = "r.example/a/app"
	repositoryOfB    = "r.example/b/app"
	repositoryHub    = "docker.io/library/tool" // pods write "tool", too
	repositoryPublic = "r.example/public/base"
	repositoryByHand = "r.example/hand/loaded" // nobody ever pulls from it
)

var (
	pulledRepositories = []string{repositoryOfA, repositoryOfB, repositoryHub, repositoryPublic}
	judgedTags         = []string{"v1", "latest"}
)

// The rules' window is 2 hours. What comes later than that is a limit that the rules name, so that nothing
// in a history does.
const (
	guardWindow = 2 * time.Hour
	latest      = 100 * time.Minute
)

// tenant is a pod with what it pulls by. Tenants of one group may pull the same repositories.
type tenant struct {
	name    string
	group   int // -1: it has no credentials
	secret  *kubeletconfig.ImagePullSecret
	account *kubeletconfig.ImagePullServiceAccount
}

func (t *tenant) credentials() *kubeletconfig.ImagePullCredentials {
	switch {
	case t.secret != nil:
		return &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{*t.secret}}
	case t.account != nil:
		return &kubeletconfig.ImagePullCredentials{KubernetesServiceAccounts: []kubeletconfig.ImagePullServiceAccount{*t.account}}
	}
	return &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
}

// matches says whether a record lets the tenant in, as a kubelet would say.
func (t *tenant) matches(record *kubeletconfig.ImagePulledRecord, image string) bool {
	if record == nil {
		return false
	}
	entry := record.CredentialMapping[imageName(image)]
	if entry.NodePodsAccessible {
		return true
	}
	for _, one := range entry.KubernetesSecrets {
		if s := t.secret; s != nil && (one.CredentialHash == s.CredentialHash || one.UID == s.UID && one.Namespace == s.Namespace && one.Name == s.Name) {
			return true
		}
	}
	return t.account != nil && slices.Contains(entry.KubernetesServiceAccounts, *t.account)
}

type content struct {
	id, digest   string
	repositories []string
}

// use is a question that a kubelet is asked.
type use struct{ id, image, tenant string }

// proof is what a pull that succeeded has shown. group -1: all pods of the node may use it.
type proof struct {
	id, name string
	group    int
}

type worldPull struct {
	image   string
	tenant  *tenant
	id      string // what it brings; empty: it can only fail
	arrived bool
	served  bool // by the node's own credentials
	read    bool // the guard read its intent
	by      int  // which one: 0 for none
}

type awayImage struct {
	*listedImage
	byHand    bool
	wasByHand bool
	until     time.Time // as in unlisted; zero: a list had it
}

type latePull struct {
	image, id string
	until     time.Time
	read      bool
	isSeen    bool // the guard knows of it, and the kubelet did nothing about its intent since
}

type guardWorld struct {
	troubles

	saw      map[string]int
	happened []string
	what     string
	wrong    string

	contents     []*content
	repositories []string // those of this history
	tenants      []*tenant
	mayPull      map[string][]int             // groups, by repository
	registry     map[string]map[string]string // content by repository and tag
	hashes       int

	// The runtime.
	node map[string]*listedImage
	late []latePull
	away map[string]awayImage // on a disk that is not mounted
	// Images that pulls brought and no list had yet: until when a list must have them, or they are late.
	unlisted map[string]time.Time

	// Ground truth.
	byHand map[string]bool // what is on the node came by hand
	// It was on the node by hand, and no list showed since that it was gone: so it is the same to a guard,
	// and no secret to this node's pods.
	wasByHand map[string]bool
	proven    map[proof]bool

	kubelet *kubeletLife
	driver  *driverProcess
	guard   bool // it runs

	began   bool // a token is drawn
	begunAt time.Time
	drawn   []listedImage   // the list that was made since; nil: none yet
	known   map[string]bool // images that came by hand, and were open when the guard had seen them
	// Images that came by hand, and were closed, since it had missed something: the store remembers that when
	// they are gone.
	shut map[string]bool

	// What the guard can't know.
	calm      bool            // it misses nothing: else an open pull of anything hides what single pulls would do
	gap       bool            // it did not see all since the last list that it judged
	gapClosed time.Time       // when such a list was judged last
	unseen    map[string]bool // image refs whose records were written since the guard looked
	// Of images that were gone on the latest list: the store has forgotten their records, the kubelet has not,
	// and writes nothing where it is proven again.
	forgot   map[string]bool
	removed  map[string]bool                             // images that were removed once
	lost     map[string]bool                             // of those, what the power took, or somebody damaged
	damaged  string                                      // the image whose record somebody damaged since the latest life
	intents  map[string]bool                             // written since the guard looked
	followed map[string]*kubeletconfig.ImagePulledRecord // records that the guard has seen

	usable map[use]bool // at the end of the latest life of a kubelet; true: by a record
	copies map[string][]byte

	boot   int
	booted time.Time
	lives  int // of the kubelet
	guards int // that were started

	dieAfter int // the guard dies amid what it does next, after so many acts; 0: it does not

	// Images and names that pulls opened to every pod in the place of Secrets, without a guard that knew since
	// before such a pull that the node had no credential: that counts only if it is proven again.
	taken map[imageAndName]bool
	// Likewise, but the guard knew; unless it ends before it sees the record.
	mayBeTaken map[imageAndName]bool
}

// kubeletLife is the kubelet's own code from one start to its end.
type kubeletLife struct {
	number    int
	files     pullmanager.PullRecordsAccessor
	writes    *noticing
	accessor  pullmanager.PullRecordsAccessor
	manager   *pullmanager.PullManager
	asks      *pullmanager.PullManager // decides the same, and writes nothing
	pulls     []*worldPull
	seesFiles bool // it looks at files that it does not know: the guard's marker was always there
	memory
}

// noticing tells the world what the kubelet writes.
type noticing struct {
	pullmanager.PullRecordsAccessor
	w           *guardWorld
	keepIntents bool // it is killed before it removes any
}

func (n *noticing) WriteImagePullIntent(logger klog.Logger, image string) error {
	n.w.kubeletWrote()
	n.w.intents[image] = true
	return n.PullRecordsAccessor.WriteImagePullIntent(logger, image)
}

func (n *noticing) DeleteImagePullIntent(logger klog.Logger, image string) error {
	if n.keepIntents {
		return os.ErrPermission
	}
	n.w.kubeletWrote()
	if n.w.intents[image] {
		n.w.gap = true // its file is gone before the guard could read it
	}
	return n.PullRecordsAccessor.DeleteImagePullIntent(logger, image)
}

func (n *noticing) WriteImagePulledRecord(logger klog.Logger, record *kubeletconfig.ImagePulledRecord) error {
	n.w.kubeletWrote()
	n.w.unseen[record.ImageRef] = true
	n.w.rewrote(record.ImageRef)
	return n.PullRecordsAccessor.WriteImagePulledRecord(logger, record)
}

func (n *noticing) DeleteImagePulledRecord(logger klog.Logger, ref string) error {
	n.w.kubeletWrote()
	return n.PullRecordsAccessor.DeleteImagePulledRecord(logger, ref)
}

// asking reads what the kubelet reads.
type asking struct {
	pullmanager.PullRecordsAccessor
	life *kubeletLife
}

func (a *asking) ListImagePullIntents() ([]*kubeletconfig.ImagePullIntent, error) { return nil, nil }
func (a *asking) WriteImagePulledRecord(klog.Logger, *kubeletconfig.ImagePulledRecord) error {
	return nil
}
func (a *asking) ImagePullIntentExists(image string) (bool, error) {
	if slices.ContainsFunc(a.life.pulls, func(p *worldPull) bool { return p.image == image }) {
		return true, nil
	}
	return a.PullRecordsAccessor.ImagePullIntentExists(image)
}

func newGuardWorld(r *rand.Rand, driver, directory string, saw map[string]int) *guardWorld {
	w := &guardWorld{
		saw: saw, mayPull: map[string][]int{}, registry: map[string]map[string]string{}, node: map[string]*listedImage{},
		byHand: map[string]bool{}, wasByHand: map[string]bool{}, shut: map[string]bool{}, proven: map[proof]bool{}, driver: &driverProcess{path: driver, directory: directory},
		unlisted: map[string]time.Time{}, known: map[string]bool{}, unseen: map[string]bool{}, lost: map[string]bool{}, forgot: map[string]bool{}, removed: map[string]bool{}, intents: map[string]bool{},
		followed: map[string]*kubeletconfig.ImagePulledRecord{}, taken: map[imageAndName]bool{}, mayBeTaken: map[imageAndName]bool{}, usable: map[use]bool{}, copies: map[string][]byte{},
		calm: r.IntN(3) == 0, boot: 1, booted: time.Now().Add(-time.Hour), troubles: newTroubles(r),
	}
	add := func(repositories ...string) *content {
		c := &content{id: fmt.Sprintf("sha256:%064x", 1+len(w.contents)), digest: fmt.Sprintf("sha256:%064x", 0xd00+len(w.contents)), repositories: repositories}
		w.contents = append(w.contents, c)
		return c
	}
	w.repositories = pulledRepositories
	if r.IntN(2) == 0 { // few, so that their pulls meet
		at := r.IntN(len(pulledRepositories) - 1)
		w.repositories = pulledRepositories[at : at+2]
	}
	for _, repository := range pulledRepositories {
		w.registry[repository] = map[string]string{}
		for range 3 {
			c := add(repository)
			if r.IntN(4) == 0 {
				c.repositories = append(c.repositories, pick(r, pulledRepositories))
			}
		}
		w.mayPull[repository] = []int{r.IntN(2)}
		if r.IntN(3) == 0 {
			w.mayPull[repository] = []int{0, 1}
		}
		for _, tag := range judgedTags {
			w.registry[repository][tag] = pick(r, w.inRepository(repository)).id
		}
	}
	add(repositoryByHand)
	add(repositoryByHand)
	for group := range 2 {
		for i := range 2 {
			namespace := fmt.Sprintf("namespace-%d-%d", group, i)
			w.tenants = append(w.tenants, &tenant{name: fmt.Sprintf("secret-%d-%d", group, i), group: group, secret: &kubeletconfig.ImagePullSecret{
				UID: "uid-" + namespace, Namespace: namespace, Name: "pull", CredentialHash: fmt.Sprintf("hash-%d", group)}})
		}
		w.tenants = append(w.tenants, &tenant{name: fmt.Sprintf("account-%d", group), group: group, account: &kubeletconfig.ImagePullServiceAccount{
			UID: fmt.Sprintf("uid-%d", group), Namespace: fmt.Sprintf("namespace-%d-0", group), Name: "builder"}})
	}
	w.tenants = append(w.tenants, &tenant{name: "nobody", group: -1})
	pause := add(repositoryByHand)
	w.node[pause.id] = &listedImage{ID: pause.id, RepoTags: []string{"r.example/hand/pause:1"}}
	w.byHand[pause.id] = true
	for range r.IntN(3) {
		w.importByHand(r)
	}
	return w
}

func (w *guardWorld) setUp() {
	if err := os.MkdirAll(w.driver.kubelet(), 0o700); err != nil {
		w.failed(err)
		return
	}
	w.gap = false
	w.what = "first start"
	w.startGuard(true)
	w.startLife()
	w.checkSafe("after the first start", anyUse)
}

func (w *guardWorld) say(format string, args ...any) {
	w.happened = append(w.happened, fmt.Sprintf("%8.1fs %-22s ", time.Since(w.epoch()).Seconds(), w.what)+fmt.Sprintf(format, args...))
}

func (w *guardWorld) epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func (w *guardWorld) failed(err error) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("%s: %v", w.what, err)
	}
}

// short makes IDs readable.
func (w *guardWorld) short(text string) string {
	for i, c := range w.contents {
		text = strings.ReplaceAll(text, c.id, fmt.Sprintf("ID%d", i))
		text = strings.ReplaceAll(text, c.digest, fmt.Sprintf("DIGEST%d", i))
	}
	return text
}

func (w *guardWorld) inRepository(repository string) (some []*content) {
	for _, c := range w.contents {
		if slices.Contains(c.repositories, repository) {
			some = append(some, c)
		}
	}
	return some
}

func (w *guardWorld) content(id string) *content {
	return w.contents[slices.IndexFunc(w.contents, func(c *content) bool { return c.id == id })]
}

// nodeIDs are the images of the runtime, in the order of their IDs.
func (w *guardWorld) nodeIDs() []string { return slices.Sorted(maps.Keys(w.node)) }

func (w *guardWorld) runtimeList() []listedImage {
	images := []listedImage{} // never null
	for _, id := range w.nodeIDs() {
		image := *w.node[id]
		image.RepoTags, image.RepoDigests = slices.Clone(image.RepoTags), slices.Clone(image.RepoDigests)
		images = append(images, image)
	}
	return images
}

// deliver does what a runtime does with the image of a pull or an import: a tag moves to it, and
// the image that had it keeps its digests.
func (w *guardWorld) deliver(name, id string, withDigest bool) {
	image, there := w.node[id]
	if !there {
		image = &listedImage{ID: id}
		w.node[id] = image
		w.forgetUses(func(u use) bool { return u.id == id })
		delete(w.known, id)
	}
	full := normalised(name)
	if !strings.Contains(full, "@") {
		for _, other := range w.node {
			other.RepoTags = slices.DeleteFunc(other.RepoTags, func(tag string) bool { return tag == full })
		}
		image.RepoTags = append(image.RepoTags, full)
	}
	digest := repository(full) + "@" + w.content(id).digest
	if withDigest && !slices.Contains(image.RepoDigests, digest) {
		image.RepoDigests = append(image.RepoDigests, digest)
	}
}

// spellings are the strings by which pods ask for an image that is listed.
func (w *guardWorld) spellings(id string) []string {
	image := w.node[id]
	names := []string{id}
	add := func(name string) {
		if hub, of := strings.CutPrefix(name, "docker.io/library/"); of {
			names = append(names, hub, strings.TrimSuffix(hub, ":latest"))
		}
		names = append(names, name)
	}
	for _, digest := range image.RepoDigests {
		add(digest)
		for _, tag := range image.RepoTags {
			if repository(tag) == repository(digest) {
				add(tag + "@" + w.content(id).digest)
			}
		}
	}
	for _, tag := range image.RepoTags {
		add(tag)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mayUse is the truth.
func (w *guardWorld) mayUse(u use) bool {
	name, t := imageName(u.image), w.tenant(u.tenant)
	return w.byHand[u.id] || w.wasByHand[u.id] || w.proven[proof{u.id, name, -1}] || t.group >= 0 && w.proven[proof{u.id, name, t.group}]
}

func (w *guardWorld) tenant(name string) *tenant {
	return w.tenants[slices.IndexFunc(w.tenants, func(t *tenant) bool { return t.name == name })]
}

// --- the kubelet and its runtime

func (w *guardWorld) timePasses(r *rand.Rand) {
	switch r.IntN(4) {
	case 0: // the kubelet cuts times to seconds
		time.Sleep(time.Duration(r.IntN(1_500)) * time.Millisecond)
	case 1:
		time.Sleep(time.Duration(r.IntN(40)) * time.Second)
	}
}

func (w *guardWorld) hoursPass(r *rand.Rand) {
	passed := time.Duration(10+r.IntN(200)) * time.Minute
	w.say("%v", passed)
	time.Sleep(passed)
}

func (w *guardWorld) kubeletWrote() {
	if !w.guard {
		w.gap = true
	}
}

func (w *guardWorld) startLife() {
	if w.wrong != "" {
		return
	}
	files, err := pullmanager.NewFSPullRecordsAccessor(logr.Discard(), w.driver.kubelet())
	if err != nil {
		w.failed(err)
		return
	}
	_, err = os.Stat(filepath.Join(w.driver.kubelet(), "image_manager", "pulled", "sha256-waybill-guard"))
	w.lives++
	life := &kubeletLife{number: w.lives, files: files, writes: &noticing{PullRecordsAccessor: files, w: w}, seesFiles: err == nil, memory: w.newMemory()}
	life.accessor = pullmanager.NewCachedPullRecordsAccessor(logr.Discard(), life.writes, 100, 100, 10)
	policy, err := pullmanager.NewImagePullCredentialVerificationPolicy(kubeletconfig.NeverVerifyPreloadedImages, nil)
	if err == nil {
		life.manager, err = pullmanager.NewImagePullManager(quiet, life.accessor, policy, w.runtime(), 10)
	}
	if err == nil {
		life.asks, err = pullmanager.NewImagePullManager(quiet, &asking{life.accessor, life}, policy, w.runtime(), 10)
	}
	if err != nil {
		w.failed(err)
		return
	}
	w.kubelet = life
	w.lateUnseen(func(latePull) bool { return true }) // its replay may have taken their intents
	w.kubeletWrote()                                  // a kubelet without a guard may do anything
}

func (w *guardWorld) runtime() *runtimeImages {
	runtime := &runtimeImages{}
	for _, image := range w.runtimeList() {
		runtime.images = append(runtime.images, kubecontainer.Image{ID: image.ID, RepoTags: image.RepoTags, RepoDigests: image.RepoDigests})
	}
	return runtime
}

// endLife ends the kubelet. What its pulls would have brought may come late.
func (w *guardWorld) endLife() {
	if w.kubelet == nil {
		return
	}
	w.usable, w.lost, w.damaged = map[use]bool{}, map[string]bool{}, ""
	w.eachUse(func(u use) {
		if !w.mustPull(u) && w.mayUse(u) {
			record, _, err := w.kubelet.accessor.GetImagePulledRecord(u.id)
			w.usable[u] = err == nil && w.tenant(u.tenant).matches(record, u.image)
		}
	})
	for _, pull := range w.kubelet.pulls {
		w.mayComeLate(pull)
	}
	maps.Copy(w.taken, w.mayBeTaken) // what the node had is known of a kubelet that runs
	w.kubelet = nil
}

func (w *guardWorld) mayComeLate(pull *worldPull) {
	if pull.id != "" && !pull.arrived {
		w.late = append(w.late, latePull{image: pull.image, id: pull.id, read: pull.read, until: time.Now().Add(latest)})
	}
}

func (w *guardWorld) forgetUses(which func(u use) bool) {
	maps.DeleteFunc(w.usable, func(u use, _ bool) bool { return which(u) })
}

func (w *guardWorld) eachUse(visit func(u use)) {
	for _, id := range w.nodeIDs() {
		for _, image := range w.spellings(id) {
			for _, t := range w.tenants {
				visit(use{id, image, t.name})
			}
		}
	}
}

func (w *guardWorld) mustPull(u use) bool { return w.ask(w.kubelet.asks, u) }

func (w *guardWorld) ask(manager *pullmanager.PullManager, u use) bool {
	t := w.tenant(u.tenant)
	must, err := manager.MustAttemptImagePull(quiet, u.image, u.id, func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		if t.secret != nil {
			return []kubeletconfig.ImagePullSecret{*t.secret}, nil, nil
		}
		return nil, t.account, nil
	})
	if err != nil {
		w.failed(err)
	}
	return must
}

func (w *guardWorld) decide(r *rand.Rand) {
	if w.kubelet == nil {
		return
	}
	ids := w.nodeIDs()
	if len(ids) == 0 {
		return
	}
	id := pick(r, ids)
	u := use{id, pick(r, w.spellings(id)), pick(r, w.tenants).name}
	w.say("%s asks for %s: must pull %t", u.tenant, w.short(u.image), w.ask(w.kubelet.manager, u))
}

func (w *guardWorld) pull(r *rand.Rand) {
	if w.kubelet == nil {
		return
	}
	if n := len(w.kubelet.pulls); n > 0 && r.IntN(3) == 0 {
		w.begin(w.kubelet.pulls[r.IntN(n)].image, pick(r, w.tenants)) // another pull of one string
	} else {
		w.begin(w.imageOf(r, pick(r, w.repositories)), pick(r, w.tenants))
	}
}

// pullsMeet: of several pulls of one repository the guard sees the beginnings, and then all their ends.
func (w *guardWorld) pullsMeet(r *rand.Rand) {
	if w.kubelet == nil {
		return
	}
	from := pick(r, w.repositories)
	image := w.imageOf(r, from)
	for i := range 2 + r.IntN(2) {
		if i > 0 && r.IntN(2) == 0 {
			image = w.imageOf(r, from)
		}
		w.begin(image, pick(r, w.tenants))
		if r.IntN(3) > 0 {
			w.guardEvents(r)
		}
	}
	for range w.kubelet.pulls {
		if w.wrong == "" && w.kubelet != nil && r.IntN(3) > 0 {
			w.endPull(r)
			if r.IntN(3) == 0 {
				w.moveTag(r)
			}
		}
	}
}

// imageOf is a string by which a pod asks for an image of a repository.
func (w *guardWorld) imageOf(r *rand.Rand, from string) string {
	image, tag := from, pick(r, judgedTags)
	digest := pick(r, w.inRepository(from)).digest
	switch r.IntN(8) {
	case 0:
		image += "@" + digest
	case 1:
		image += ":" + tag + "@" + digest
	default:
		image += ":" + tag
	}
	if hub, of := strings.CutPrefix(image, "docker.io/library/"); of && r.IntN(2) == 0 {
		image = strings.TrimSuffix(hub, ":latest")
	}
	return image
}

func (w *guardWorld) begin(image string, by *tenant) {
	pull := &worldPull{image: image, tenant: by}
	from := repository(pull.image)
	pull.served = w.isServed(from, by)
	if pull.served || w.mayPullFrom(from, by.group) {
		pull.id = w.resolve(pull.image)
	}
	w.say("%s pulls %s, which is %s", pull.tenant.name, w.short(pull.image), w.short(pull.id))
	if err := w.kubelet.manager.RecordPullIntent(logr.Discard(), pull.image); err != nil {
		w.failed(err)
	}
	w.kubelet.pulls = append(w.kubelet.pulls, pull)
	if w.calm {
		w.guardEvents(nil)
	}
}

func (w *guardWorld) mayPullFrom(repository string, group int) bool {
	return repository == repositoryPublic || slices.Contains(w.mayPull[repository], group)
}

func (w *guardWorld) resolve(image string) string {
	from := repository(image)
	if _, digest, by := strings.Cut(image, "@"); by {
		for _, c := range w.inRepository(from) {
			if c.digest == digest {
				return c.id
			}
		}
	}
	return w.registry[from][normalised(image)[len(from)+1:]]
}

func (w *guardWorld) bring(pull *worldPull) {
	if _, there := w.node[pull.id]; !there {
		w.unlisted[pull.id] = time.Now().Add(latest)
	}
	w.deliver(pull.image, pull.id, true)
	pull.arrived = true
}

func (w *guardWorld) arrive(r *rand.Rand) {
	if w.kubelet == nil {
		return
	}
	for _, pull := range w.kubelet.pulls {
		if pull.id != "" && !pull.arrived && r.IntN(2) == 0 {
			w.say("%s of %s", w.short(pull.id), w.short(pull.image))
			w.bring(pull)
		}
	}
}

func (w *guardWorld) endPull(r *rand.Rand) {
	if w.kubelet == nil || len(w.kubelet.pulls) == 0 {
		return
	}
	at := r.IntN(len(w.kubelet.pulls))
	pull := w.kubelet.pulls[at]
	w.kubelet.pulls = slices.Delete(w.kubelet.pulls, at, at+1)
	w.lateUnseen(func(late latePull) bool { return late.image == pull.image })
	if _, there := w.node[pull.id]; pull.id == "" || pull.arrived && !there || r.IntN(3) == 0 {
		late := r.IntN(2) == 0
		w.say("%s of %s failed, may come late %t", w.short(pull.image), pull.tenant.name, late)
		w.kubelet.manager.RecordImagePullFailed(quiet, pull.image)
		if late {
			w.mayComeLate(pull)
		}
		return
	}
	if !pull.arrived {
		w.bring(pull)
	}
	group, credentials := pull.tenant.group, pull.tenant.credentials()
	if pull.served || repository(pull.image) == repositoryPublic && r.IntN(2) == 0 {
		group, credentials = -1, &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
	}
	if pull.served {
		w.noteServed(pull)
	} else {
		w.prove(proof{pull.id, imageName(pull.image), group})
	}
	w.noteTaken(pull, credentials)
	w.say("%s of %s brought %s, group %d", w.short(pull.image), pull.tenant.name, w.short(pull.id), group)
	if w.calm || r.IntN(12) > 0 {
		w.kubelet.manager.RecordImagePulled(quiet, pull.image, pull.id, credentials)
		return
	}
	w.kubelet.writes.keepIntents = true
	w.kubelet.manager.RecordImagePulled(quiet, pull.image, pull.id, credentials)
	w.say("the kubelet is killed before it removes the intent, and starts again")
	w.endLife()
	w.startLife()
}

func (w *guardWorld) noteTaken(pull *worldPull, credentials *kubeletconfig.ImagePullCredentials) {
	name := imageName(pull.image)
	if !credentials.NodePodsAccessible {
		return
	}
	seen := w.guard && !pull.served && !w.kubelet.mayHaveHad[repository(pull.image)]
	for _, other := range append([]*worldPull{pull}, w.kubelet.pulls...) {
		seen = seen && (imageName(other.image) != name || other.by == w.guards)
	}
	if w.mayBeTaken[imageAndName{pull.id, name}] = true; !seen {
		w.taken[imageAndName{pull.id, name}] = true
	}
}

func (w *guardWorld) arriveLate(r *rand.Rand) {
	w.late = slices.DeleteFunc(w.late, func(late latePull) bool { return time.Now().After(late.until) })
	if len(w.late) == 0 {
		return
	}
	at := r.IntN(len(w.late))
	late := w.late[at]
	w.late = slices.Delete(w.late, at, at+1)
	w.say("%s of %s", w.short(late.id), w.short(late.image))
	_, there := w.node[late.id]
	w.bring(&worldPull{image: late.image, id: late.id})
	if !there {
		w.unlisted[late.id] = late.until
	}
	if w.kubelet != nil && w.kubelet.seesFiles && late.isSeen {
		w.checkSafe("late, before any list has it,", func(u use) bool { return u.image == late.image })
	}
}

func (w *guardWorld) lateUnseen(which func(late latePull) bool) {
	for i, late := range w.late {
		w.late[i].isSeen = late.isSeen && !which(late)
	}
}

func (w *guardWorld) moveTag(r *rand.Rand) {
	from, tag := pick(r, w.repositories), pick(r, judgedTags)
	id := pick(r, w.inRepository(from)).id
	w.say("%s:%s is %s", from, tag, w.short(id))
	w.registry[from][tag] = id
}

func (w *guardWorld) importByHand(r *rand.Rand) {
	from := repositoryByHand
	if r.IntN(4) == 0 {
		from = pick(r, w.repositories)
	}
	c := pick(r, w.inRepository(from)[:2])
	name := from + ":" + pick(r, judgedTags)
	w.say("%s as %s", w.short(c.id), name)
	w.deliver(name, c.id, r.IntN(2) == 0)
	w.byHand[c.id] = true
}

func (w *guardWorld) removeImage(r *rand.Rand) {
	ids := w.nodeIDs()
	if len(ids) < 2 {
		return
	}
	id := pick(r, ids[:len(ids)-1]) // the last one stays
	w.say("%s", w.short(id))
	w.imageGoes(id)
}

// wipeRuntime: the runtime has another disk, an empty one.
func (w *guardWorld) wipeRuntime(*rand.Rand) {
	w.say("%s", w.short(fmt.Sprint(w.nodeIDs())))
	w.saw[sawGuardWiped]++
	w.away = map[string]awayImage{}
	for _, id := range w.nodeIDs() {
		w.away[id] = awayImage{w.node[id], w.byHand[id], w.wasByHand[id], w.unlisted[id]}
		w.imageGoes(id)
	}
}

// mountAgain: the runtime has its first disk, with what was there.
func (w *guardWorld) mountAgain(*rand.Rand) {
	if w.away == nil {
		return
	}
	w.say("")
	for _, id := range w.nodeIDs() {
		w.imageGoes(id)
	}
	for id, image := range w.away {
		if !image.until.IsZero() {
			if !image.byHand && time.Now().After(image.until) {
				continue // later than the window
			}
			w.unlisted[id] = image.until
		}
		w.node[id], w.byHand[id], w.wasByHand[id] = image.listedImage, image.byHand, image.wasByHand
		delete(w.known, id)
	}
	w.away = nil
}

func (w *guardWorld) imageGoes(id string) {
	delete(w.node, id)
	delete(w.unlisted, id)
	w.removed[id] = true
	w.wasByHand[id], w.byHand[id] = w.wasByHand[id] || w.byHand[id], false
	w.forgetUses(func(u use) bool { return u.id == id })
	for _, pull := range w.pulls() {
		if pull.id == id {
			pull.arrived = false
		}
	}
}

func (w *guardWorld) pulls() []*worldPull {
	if w.kubelet == nil {
		return nil
	}
	return w.kubelet.pulls
}

func (w *guardWorld) changeSecret(r *rand.Rand) {
	t := pick(r, w.tenants)
	if t.secret == nil {
		return
	}
	switch w.hashes++; r.IntN(3) {
	case 0: // rotated
		t.secret.CredentialHash = fmt.Sprintf("hash-%d-%d", t.group, w.hashes)
	case 1: // renamed
		t.secret.Name = fmt.Sprintf("pull-%d", w.hashes)
	default: // copied from another namespace
		for _, other := range w.tenants {
			if other.group == t.group && other.secret != nil && other != t {
				t.secret.CredentialHash = other.secret.CredentialHash
			}
		}
	}
	w.say("%s: %s %s", t.name, t.secret.Name, t.secret.CredentialHash)
	w.forgetUses(func(u use) bool { return u.tenant == t.name })
}

func (w *guardWorld) prune(r *rand.Rand) {
	if w.kubelet == nil {
		return
	}
	var listed []string
	for _, id := range w.nodeIDs() {
		if r.IntN(2) == 0 {
			listed = append(listed, id)
		}
	}
	until := time.Now().Add(-time.Duration(r.IntN(3)) * time.Second)
	w.say("all but %s", w.short(fmt.Sprint(listed)))
	w.kubelet.manager.PruneUnknownRecords(quiet, listed, until)
}

func (w *guardWorld) stopKubelet(*rand.Rand) {
	if w.kubelet != nil {
		w.say("")
		w.endLife()
	}
}

func (w *guardWorld) restartKubelet(*rand.Rand) {
	if w.kubelet != nil {
		w.say("guard runs %t", w.guard)
		w.endLife()
		w.startLife()
	}
}

func (w *guardWorld) startUnguarded(*rand.Rand) {
	if w.kubelet == nil && (w.guard || !w.calm) {
		w.say("guard runs %t", w.guard)
		w.startLife()
	}
}
