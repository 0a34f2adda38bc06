package waybill

// The values of dev.waybill.varlink, one line a member; a test compares them with it.

import (
	"encoding/json"
	"time"
)

// strict: an image is open only by a proof, or if it is known to have come without the kubelet.
// kubelet: each answer and each stored state is the kubelet's own.
type Mode string

// The kubelet's imagePullCredentialsVerificationPolicy.
type Verification string

// Who checked a credential when a pull proved it. guest: the pull happened in the guest of a
// confidential container, and the node proved nothing. nobody: the pull used no credentials of a pod,
// so no registry checked any.
type VerifiedBy string

// imageRef: pulled/; image: pulling/.
type QuarantineKind string

// Whether a credential of a record counts.
type CredentialStanding string

type CredentialKind string

// How a pod's range relates to the pool of now.
type PoolRelation string

// Why a pod is in quarantine. lostRanges, untilImport: without a UID. unknown: a later version's.
type PodQuarantineKind string

// Why the store is degraded. unknown: a later version's.
type DegradedKind string

// degraded: a reason to be so. accepted: it ends each reason before. takenBack: it ends the reason
// of the same words. note: an operator's word on a single image or pull.
type DegradedAction string

// dropped: no pull, but stands for images that were gone and are no longer retained.
type PullState string

// nothing: the runtime was asked after the error, and said that the image is not there.
type PullOutcome string

// A container's imagePullPolicy.
type PullPolicy string

// Of the kubelet's files. v1alpha1: kubelets to 1.34.
type KubeletApiVersion string

type StreamKind string

type RevocationKind string

type Policy struct {
	Verification           Verification `json:"verification,omitempty"`
	Allowlist              []string     `json:"allowlist,omitempty"`              // image names, or prefixes that end in "/*"
	AllowlistPreloadedOnly bool         `json:"allowlistPreloadedOnly,omitempty"` // KEP-2535's text; the kubelet's code opens any image
	// Image names, or prefixes ending in "/*", whose proofs count only if the registry itself checked
	// them; "*": all.
	RegistryOnly []string `json:"registryOnly,omitempty"`
	// Exceptions within those; of two patterns, the longer one counts.
	AnyProof []string `json:"anyProof,omitempty"`
}

// Host IDs for pods in user namespaces (KEP-127). Left out: 65536, all above, 65536, 110.
type Pool struct {
	Enabled   *bool `json:"enabled,omitempty"` // true, if left out
	FirstID   int64 `json:"firstId,omitempty"`
	IDCount   int64 `json:"idCount,omitempty"`
	IDsPerPod int64 `json:"idsPerPod,omitempty"`
	MaxPods   int64 `json:"maxPods,omitempty"`
}

// What an owner decides by. An observer is told the same.
type Settings struct {
	Mode               Mode   `json:"mode,omitempty"`
	Policy             Policy `json:"policy,omitzero"`
	MaxAgeSeconds      int64  `json:"maxAgeSeconds,omitempty"` // how long a proof counts; 0: for ever, or as the store remembers
	Pool               Pool   `json:"pool,omitzero"`
	ShortNamesAnywhere *bool  `json:"shortNamesAnywhere,omitempty"` // false: the runtime completes them with docker.io only
	MapBytes           int64  `json:"mapBytes,omitempty"`           // the bound of data.mdb; 0: as the store remembers
	TraceFile          string `json:"traceFile,omitempty"`          // where pulls and uses are written, for sizing; empty: nowhere
	FlushesTwice       bool   `json:"flushesTwice,omitempty"`       // for disks that acknowledge what they lose (docs/limits.md)
}

// OCI's names; empty: not given
type Platform struct {
	OS           string   `json:"os"`
	Architecture string   `json:"architecture"`
	Variant      string   `json:"variant,omitempty"`
	OSVersion    string   `json:"osVersion,omitempty"`
	OSFeatures   []string `json:"osFeatures,omitempty"`
}

// An image as the runtime lists it (CRI's Image, crictl images).
type ListedImage struct {
	ID             string   `json:"id"` // empty only in a list of preloaded images
	RepoTags       []string `json:"repoTags,omitempty"`
	RepoDigests    []string `json:"repoDigests,omitempty"`
	RuntimeHandler string   `json:"runtimeHandler,omitempty"` // empty: any handler's
	Pinned         bool     `json:"pinned,omitempty"`
	Imported       bool     `json:"imported,omitempty"` // the runtime shows that no pull brought it: then every pod may use it
	Bytes          int64    `json:"bytes,omitempty"`    // on the disk; for a trace alone
}

// When and by whom a credential was proven. Set by the store, and ignored in requests.
type Proof struct {
	Verified   time.Time  `json:"verified,omitzero"` // whole seconds; none: unknown
	VerifiedBy VerifiedBy `json:"verifiedBy,omitempty"`
	ValidUntil time.Time  `json:"validUntil,omitzero"` // of a token, its `exp`
	PullBegan  int64      `json:"pullBegan,omitempty"` // the commit in which that pull began; 0: unknown
}

type Secret struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Hash      string `json:"hash,omitempty"` // of its credentials (HashCredentials); empty: matches nothing
	Proof     *Proof `json:"proof,omitzero"`
}

type ServiceAccount struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Proof     *Proof `json:"proof,omitzero"`
}

// A Secret or a service account; without a UID, whatever the UID.
type CredentialName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// With what an image was pulled: nothing or the node's own credentials (then every pod may use it),
// or Secrets, or service accounts. All empty: nobody gets in by it.
type PulledWith struct {
	EveryPod        bool             `json:"everyPod,omitempty"`
	Secrets         []Secret         `json:"secrets,omitempty"`
	ServiceAccounts []ServiceAccount `json:"serviceAccounts,omitempty"`
	EveryPodProof   *Proof           `json:"everyPodProof,omitzero"`
}

// What is known of a runtime handler's copy of an image that was pulled, or closed.
type PulledRecord struct {
	ImageRef         string                `json:"imageRef"`
	RuntimeHandler   string                `json:"runtimeHandler,omitempty"` // empty: the default handler
	Updated          time.Time             `json:"updated,omitzero"`
	Credentials      map[string]PulledWith `json:"credentials"`            // by image name: without tag and digest, as the pod wrote it
	PrivateNames     []string              `json:"privateNames,omitempty"` // under which Secrets or service accounts were on record, and are not now: a pull without credentials does not open them; "": every name
	ManifestDigest   string                `json:"manifestDigest,omitempty"`
	Platform         *Platform             `json:"platform,omitzero"`
	GuestPlatform    *Platform             `json:"guestPlatform,omitzero"`  // of the handler when the image was pulled
	ClosedBecause    string                `json:"closedBecause,omitempty"` // one sentence; empty: a pull made it
	ClosedByList     bool                  `json:"closedByList,omitempty"`
	ClosedByOperator bool                  `json:"closedByOperator,omitempty"` // only what pulls prove opens it, whatever a runtime says
	AbsentSince      time.Time             `json:"absentSince,omitzero"`       // it is gone from the node, and only retained
	Commit           int64                 `json:"commit,omitempty"`           // that wrote it
}

// An image that came without the kubelet: open to every pod while it is on the node.
type PreloadedImage struct {
	ImageRef       string   `json:"imageRef"`
	RuntimeHandler string   `json:"runtimeHandler,omitempty"`
	Names          []string `json:"names"`
	// who says so: "listed", "imported", "pinned", "operator", …; "unconfirmed": nobody, it was there
	// at the first start
	Source      string    `json:"source"`
	Reason      string    `json:"reason,omitempty"` // an operator's
	Since       time.Time `json:"since"`
	AbsentSince time.Time `json:"absentSince,omitzero"` // it is gone from the node, and only retained
	Commit      int64     `json:"commit,omitempty"`     // that wrote it
}

// A credential of a record: everyPod has no name.
type ExplainedCredential struct {
	ImageName string             `json:"imageName"`
	Kind      CredentialKind     `json:"kind"`
	Namespace string             `json:"namespace,omitempty"`
	Name      string             `json:"name,omitempty"`
	UID       string             `json:"uid,omitempty"`
	Proof     *Proof             `json:"proof,omitzero"`
	Standing  CredentialStanding `json:"standing"`
}

// A file of a kubelet that could not be read: it closes its image until that is pulled again.
type QuarantinedFile struct {
	Kind   QuarantineKind `json:"kind"`
	SHA256 string         `json:"sha256"` // of the image ref, or of the image string
	File   string         `json:"file"`   // below the kubelet directory
	Reason string         `json:"reason"`
	Since  time.Time      `json:"since"`
}

// A pull that may still bring an image, or may have brought one that nobody recorded.
type UnresolvedPull struct {
	Pull           int64     `json:"pull"`
	AnyImage       bool      `json:"anyImage,omitempty"` // it may have brought any image; image is empty then
	Image          string    `json:"image"`
	RuntimeHandler string    `json:"runtimeHandler,omitempty"`
	State          PullState `json:"state"`
	Several        bool      `json:"several,omitempty"` // it stands for several pulls of one string that ended alike
	Began          time.Time `json:"began"`
	Ended          time.Time `json:"ended,omitzero"`
	EndedAt        string    `json:"endedAt,omitempty"` // the same moment by the boot clock; opaque
	Commit         int64     `json:"commit,omitempty"`  // in which it began
}

type RuntimeHandler struct {
	Name           string    `json:"name"`
	IsDefault      bool      `json:"isDefault,omitempty"`
	UserNamespaces bool      `json:"userNamespaces,omitempty"`
	GuestPlatform  *Platform `json:"guestPlatform,omitzero"` // of a utility VM
}

type IdMapping struct {
	HostID      int64 `json:"hostId"`
	ContainerID int64 `json:"containerId"`
	Length      int64 `json:"length"`
}

type PodMapping struct {
	PodUID   string       `json:"podUid"`
	HostID   int64        `json:"hostId"`
	Length   int64        `json:"length"`
	Created  time.Time    `json:"created"`
	Relation PoolRelation `json:"relation"`
}

type HostIdRange struct {
	First  int64 `json:"first"`
	Length int64 `json:"length"`
}

// A pod that may live with unverified host IDs. Its ranges are not handed out.
type QuarantinedPod struct {
	PodUID string            `json:"podUid"` // empty: ranges of unknown pods were lost, so none is handed out
	Kind   PodQuarantineKind `json:"kind"`
	Ranges []HostIdRange     `json:"ranges"` // empty: unknown, so no new range is handed out to any pod
	File   string            `json:"file"`   // below the kubelet directory; may be empty
	Reason string            `json:"reason"`
	Since  time.Time         `json:"since"`
}

// In ranges of the pool's idsPerPod.
type PoolUse struct {
	Enabled         bool   `json:"enabled"`
	FirstID         int64  `json:"firstId"`
	IDCount         int64  `json:"idCount"`
	IDsPerPod       int64  `json:"idsPerPod"`
	MaxPods         int64  `json:"maxPods"`
	Ranges          int64  `json:"ranges"` // all but the reserved ones
	Used            int64  `json:"used"`
	Free            int64  `json:"free"`
	LargestFreeRun  int64  `json:"largestFreeRun"`
	Mappings        int64  `json:"mappings"`
	OutsidePool     int64  `json:"outsidePool"` // of those
	OtherLength     int64  `json:"otherLength"`
	QuarantinedPods int64  `json:"quarantinedPods"`
	RefusedBecause  string `json:"refusedBecause"` // no range is handed out; empty: they are
}

type DegradedEvent struct {
	At       time.Time      `json:"at"`
	Kind     DegradedKind   `json:"kind"`
	Action   DegradedAction `json:"action"`
	Degraded bool           `json:"degraded"` // from then on
	Reason   string         `json:"reason"`
}

type ClassifiedImage struct {
	ImageRef       string `json:"imageRef"`
	RuntimeHandler string `json:"runtimeHandler,omitempty"`
	Name           string `json:"name"`
	Open           bool   `json:"open"`
	Because        string `json:"because"`
}

type ClassifyReport struct {
	Listed         int64             `json:"listed"`
	Repeated       int64             `json:"repeated"` // an image that was in the list already
	NotNames       int64             `json:"notNames"` // names that do not parse, and so do not count
	Known          int64             `json:"known"`
	Opened         int64             `json:"opened"` // now known as preloaded
	Closed         int64             `json:"closed"`
	Left           int64             `json:"left"`          // to a later list
	United         int64             `json:"united"`        // records under another alias of the same image, now one
	PullsResolved  int64             `json:"pullsResolved"` // they can bring nothing any more
	RecordsGone    int64             `json:"recordsGone"`   // of images that are not listed
	PreloadedGone  int64             `json:"preloadedGone"`
	Classified     []ClassifiedImage `json:"classified"`     // the first 1000 of each kind
	SharedDigests  []string          `json:"sharedDigests"`  // of two images, so of neither; the first 100
	NothingBecause string            `json:"nothingBecause"` // why no image was classified; empty: images were
}

type MigrationStep struct {
	From          int64  `json:"from"`
	To            int64  `json:"to"`
	Name          string `json:"name"`
	ValuesWritten int64  `json:"valuesWritten"`
}

type MigrationReport struct {
	From   int64           `json:"from"`
	To     int64           `json:"to"`
	Steps  []MigrationStep `json:"steps"`
	Backup string          `json:"backup"`
	Losses []string        `json:"losses"` // of going down, one line each
}

type RuntimesReport struct {
	Added          []string `json:"added"`
	Vanished       []string `json:"vanished"` // their records stay until they are pruned
	Changed        []string `json:"changed"`  // their images must be verified again
	ImagesToVerify int64    `json:"imagesToVerify"`
	TurnedOn       bool     `json:"turnedOn"`     // runtime classes were off before
	RecordsMoved   int64    `json:"recordsMoved"` // taken from other handlers than the default
	PullsMoved     int64    `json:"pullsMoved"`
}

// Of a kubelet's directory.
type ImportReport struct {
	Files        int64    `json:"files"`
	Unchanged    int64    `json:"unchanged"`
	Records      int64    `json:"records"`
	Intents      int64    `json:"intents"`
	Preloaded    int64    `json:"preloaded"`
	KnownRefs    int64    `json:"knownRefs"` // of refs that the store knows already: not taken
	Quarantined  int64    `json:"quarantined"`
	Skipped      int64    `json:"skipped"` // names that are not the kubelet's
	Interrupted  bool     `json:"interrupted"`
	NewlyWritten string   `json:"newlyWritten"` // the first file that a kubelet wrote since the last import
	Problems     []string `json:"problems"`     // one line for each unreadable file; the first 100
}

// What opening found and did about ranges of host IDs.
type IdMappingReport struct {
	Files           int64    `json:"files"`
	Unchanged       int64    `json:"unchanged"`
	Imported        int64    `json:"imported"`
	Quarantined     int64    `json:"quarantined"`
	Problems        []string `json:"problems"` // one line a pod; the first 100
	Mappings        int64    `json:"mappings"`
	QuarantinedPods int64    `json:"quarantinedPods"`
	OutsidePool     int64    `json:"outsidePool"`
	OtherLength     int64    `json:"otherLength"`
	OffPool         []string `json:"offPool"` // UIDs of the pods of both; the first 100
	RefusedBecause  string   `json:"refusedBecause"`
}

// What opening found and did.
type Opening struct {
	Created                   bool             `json:"created"`
	FirstStart                bool             `json:"firstStart"`
	CommitUndone              bool             `json:"commitUndone"` // a crash had cut it short, before anybody was told of it
	Rebuilt                   bool             `json:"rebuilt"`      // the database failed its check
	RebuiltFrom               string           `json:"rebuiltFrom"`  // where it is kept
	RemovedPaths              []string         `json:"removedPaths"` // set aside earlier, now deleted
	RecordsCarried            int64            `json:"recordsCarried"`
	RecordsWithoutCredentials int64            `json:"recordsWithoutCredentials"`
	PullsCarried              int64            `json:"pullsCarried"`
	LossMarkerMade            bool             `json:"lossMarkerMade"`
	LossMarkerInStore         bool             `json:"lossMarkerInStore"` // it would be lost with the store
	Findings                  []string         `json:"findings"`          // damage, one line each
	Mended                    []string         `json:"mended"`            // files that others could read or write, and now can't
	Warnings                  []string         `json:"warnings"`
	Degraded                  bool             `json:"degraded"`
	DegradedBecause           string           `json:"degradedBecause"`
	Unrecorded                bool             `json:"unrecorded"` // pulls may be unrecorded
	UnrecordedBecause         string           `json:"unrecordedBecause"`
	Closed                    int64            `json:"closed"` // images by that; their names are the first 1000
	ClosedImages              []string         `json:"closedImages"`
	PullsFound                int64            `json:"pullsFound"` // left by an earlier process
	PullsReplayed             int64            `json:"pullsReplayed"`
	PullsLeft                 int64            `json:"pullsLeft"`
	Replayed                  []string         `json:"replayed"`      // their image strings; the first 100
	ReplaySkipped             bool             `json:"replaySkipped"` // no list was given to replay against
	ReadersCleared            int64            `json:"readersCleared"`
	Records                   int64            `json:"records"`
	QuarantinedFiles          int64            `json:"quarantinedFiles"`
	Commit                    int64            `json:"commit"`
	CopyOf                    string           `json:"copyOf"` // the directory that this store was copied from
	Imported                  ImportReport     `json:"imported"`
	IDMappings                IdMappingReport  `json:"idMappings"`
	Migration                 *MigrationReport `json:"migration,omitzero"`
	Runtimes                  *RuntimesReport  `json:"runtimes,omitzero"`
	Classified                *ClassifyReport  `json:"classified,omitzero"`
}

type Counts struct {
	Records             int64 `json:"records"`             // with those that are only retained
	OtherHandlerRecords int64 `json:"otherHandlerRecords"` // of those, under another handler than the default
	Handlers            int64 `json:"handlers"`
	Intents             int64 `json:"intents"`
	QuarantinedFiles    int64 `json:"quarantinedFiles"`
	ObservedPreloaded   int64 `json:"observedPreloaded"` // files of a kubelet's observed-preloaded/
	KubeletFiles        int64 `json:"kubeletFiles"`
	Preloaded           int64 `json:"preloaded"` // with those that are only retained
	Aliases             int64 `json:"aliases"`
	IDMappings          int64 `json:"idMappings"`
	QuarantinedPods     int64 `json:"quarantinedPods"`
	Revocations         int64 `json:"revocations"`
	MapBytes            int64 `json:"mapBytes"`
	UsedBytes           int64 `json:"usedBytes"`
	Readers             int64 `json:"readers"`
	MaxReaders          int64 `json:"maxReaders"`
}

type Backup struct {
	Path          string `json:"path"`
	SchemaVersion int64  `json:"schemaVersion"`
	Commit        int64  `json:"commit"`
	Bytes         int64  `json:"bytes"`
}

type RevokeReport struct {
	Images          int64 `json:"images"`  // that lost something; 0: nothing was open by it, check the spelling
	Secrets         int64 `json:"secrets"` // for each image name of each image
	ServiceAccounts int64 `json:"serviceAccounts"`
	EveryPod        int64 `json:"everyPod"`
	EqualHashes     int64 `json:"equalHashes"` // Secrets elsewhere with the same credentials: still open
	Stored          bool  `json:"stored"`      // a revocation is kept
}

type OpenStream struct {
	ID          string     `json:"id"` // the first 16 hex digits of the token's SHA-256: opens nothing
	Kind        StreamKind `json:"kind"`
	Prepared    time.Time  `json:"prepared"`
	ExpiresInMS int64      `json:"expiresInMs"`
}

// What MustPull answers. Take one from an answer only: the zero value would say "use".
type PullDecision struct {
	Pull   bool   `json:"pull"`
	Result string `json:"result"` // the kubelet's label: "credentialRecordFound"
	Reason string `json:"reason"` // "secretHashMatches"
	Why    string `json:"why"`    // the same in one sentence; for the node's log, never for the pod
}

// UnmarshalJSON takes what is not said for "pull".
func (d *PullDecision) UnmarshalJSON(text []byte) error {
	type members PullDecision
	said := members{Pull: true}
	err := json.Unmarshal(text, &said)
	*d = PullDecision(said)
	d.Pull = d.Pull || err != nil
	return err
}

type Revocation struct {
	Kind           RevocationKind `json:"kind"`
	Namespace      string         `json:"namespace,omitempty"`
	Name           string         `json:"name,omitempty"`
	UID            string         `json:"uid,omitempty"` // empty: whatever the UID
	ImageRef       string         `json:"imageRef,omitempty"`
	RuntimeHandler string         `json:"runtimeHandler,omitempty"`
	Hash           string         `json:"hash,omitempty"`
	Since          time.Time      `json:"since,omitzero"`
	Unfinished     bool           `json:"unfinished,omitempty"` // a step failed: records still hold some of it, which opens nothing
	Commit         int64          `json:"commit,omitempty"`     // proofs by pulls that began in it or before do not come back
}

// A host that may serve a pull instead of the registry.
type PullSource struct {
	Host            string `json:"host"`
	ServesManifests bool   `json:"servesManifests"`
	ServesLayers    bool   `json:"servesLayers"`
	Insecure        bool   `json:"insecure"` // plain HTTP, or its certificate is not verified
	Open            bool   `json:"open"`     // said to ask no pod for its credentials
	OpenBecause     string `json:"openBecause"`
	Where           string `json:"where"` // "/etc/containerd/certs.d/_default/hosts.toml"
}

type StreamFinding struct {
	Component string `json:"component"` // "kubelet", "apiServer"
	Severity  string `json:"severity"`  // "ignored", "deprecated", "removed", "fatal"
	Subject   string `json:"subject"`
	Setting   string `json:"setting"`
	Words     string `json:"words"` // what the component prints about it
	Advice    string `json:"advice"`
	Source    string `json:"source"` // a release and its file
}

// What opening a store of streams found.
type StreamsOpening struct {
	Opening    Opening `json:"opening"`
	Voided     int64   `json:"voided"`
	VoidReason string  `json:"voidReason"` // why all were; empty: they were kept
	Open       int64   `json:"open"`
}

// The words.
const (
	ModeStrict  Mode = "strict"
	ModeKubelet Mode = "kubelet"

	NeverVerify                  Verification = "NeverVerify"
	NeverVerifyPreloadedImages   Verification = "NeverVerifyPreloadedImages"
	NeverVerifyAllowlistedImages Verification = "NeverVerifyAllowlistedImages"
	AlwaysVerify                 Verification = "AlwaysVerify"

	VerifiedByUnknown  VerifiedBy = "unknown"
	VerifiedByRegistry VerifiedBy = "registry"
	VerifiedByMirror   VerifiedBy = "mirror"
	VerifiedByGuest    VerifiedBy = "guest"
	VerifiedByNobody   VerifiedBy = "nobody"

	QuarantineImageRef QuarantineKind = "imageRef"
	QuarantineImage    QuarantineKind = "image"

	StandingCounts        CredentialStanding = "counts"
	StandingTooOld        CredentialStanding = "tooOld"
	StandingRevoked       CredentialStanding = "revoked"
	StandingNotByRegistry CredentialStanding = "notByRegistry"
	StandingUnknown       CredentialStanding = "unknown"

	CredentialEveryPod       CredentialKind = "everyPod"
	CredentialSecret         CredentialKind = "secret"
	CredentialServiceAccount CredentialKind = "serviceAccount"

	RelationInPool      PoolRelation = "inPool"
	RelationOutsidePool PoolRelation = "outsidePool"
	RelationOtherLength PoolRelation = "otherLength"

	PodQuarantineUnknown        PodQuarantineKind = "unknown"
	PodQuarantineOther          PodQuarantineKind = "other"
	PodQuarantineFileConflict   PodQuarantineKind = "fileConflict"
	PodQuarantineOverlap        PodQuarantineKind = "overlap"
	PodQuarantineUnreadableFile PodQuarantineKind = "unreadableFile"
	PodQuarantineFromBackup     PodQuarantineKind = "fromBackup"
	PodQuarantineLostRanges     PodQuarantineKind = "lostRanges"
	PodQuarantineUntilImport    PodQuarantineKind = "untilImport"

	DegradedUnknown          DegradedKind = "unknown"
	DegradedOther            DegradedKind = "other"
	DegradedOperator         DegradedKind = "operator"
	DegradedStoreLost        DegradedKind = "storeLost"
	DegradedStoreStale       DegradedKind = "storeStale"
	DegradedStoreRebuilt     DegradedKind = "storeRebuilt"
	DegradedStoreRestored    DegradedKind = "storeRestored"
	DegradedImportUnfinished DegradedKind = "importUnfinished"
	DegradedUnrecordedPeriod DegradedKind = "unrecordedPeriod"
	DegradedHistoryFull      DegradedKind = "historyFull"

	ActionUnknown   DegradedAction = "unknown"
	ActionDegraded  DegradedAction = "degraded"
	ActionAccepted  DegradedAction = "accepted"
	ActionTakenBack DegradedAction = "takenBack"
	ActionNote      DegradedAction = "note"

	StateRunning PullState = "running"
	StateFailed  PullState = "failed"
	StateUnknown PullState = "unknown"
	StateDropped PullState = "dropped"

	OutcomePulled  PullOutcome = "pulled"
	OutcomeFailed  PullOutcome = "failed"
	OutcomeUnknown PullOutcome = "unknown"
	OutcomeNothing PullOutcome = "nothing"

	PullAlways       PullPolicy = "Always"
	PullIfNotPresent PullPolicy = "IfNotPresent"
	PullNever        PullPolicy = "Never"

	KubeletV1beta1  KubeletApiVersion = "v1beta1"
	KubeletV1alpha1 KubeletApiVersion = "v1alpha1"

	StreamExec        StreamKind = "exec"
	StreamAttach      StreamKind = "attach"
	StreamPortForward StreamKind = "portForward"

	RevokeSecret         RevocationKind = "secret"
	RevokeServiceAccount RevocationKind = "serviceAccount"
	RevokeNamespace      RevocationKind = "namespace"
	RevokeImage          RevocationKind = "image"
	RevokeCredential     RevocationKind = "credential"
)
