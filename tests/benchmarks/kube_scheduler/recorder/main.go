// Answers a file of clusters and pods with the filter and score plugins of kube-scheduler itself.
//
//	recorder questions.json answers.json
package main

import (
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Case, Entry and File are the recording's form; a node stays as it was asked.
type Case struct {
	Case  string            `json:"case"`
	Kind  string            `json:"kind"`
	Nodes []json.RawMessage `json:"nodes"`
	Pods  []*Entry          `json:"pods"`
}
type Entry struct {
	Pod    json.RawMessage             `json:"pod"`
	Node   *string                     `json:"node"`
	Scores map[string]map[string]int64 `json:"scores"`
}
type File struct {
	Kubernetes string  `json:"kubernetes"`
	Profile    string  `json:"profile"`
	Note       string  `json:"note"`
	Cases      []*Case `json:"cases"`
}

type scoreHeap []fwk.NodePluginScores

func (h scoreHeap) Len() int           { return len(h) }
func (h scoreHeap) Less(i, j int) bool { return h[i].TotalScore > h[j].TotalScore }
func (h scoreHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *scoreHeap) Push(x any)        { *h = append(*h, x.(fwk.NodePluginScores)) }
func (h *scoreHeap) Pop() any {
	old := *h
	n := len(old)
	x := old[n-1]
	*h = old[:n-1]
	return x
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var weights = map[string]int32{"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2,
	"InterPodAffinity": 2, "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1}

func profile() *config.KubeSchedulerProfile {
	cfg, err := latest.Default()
	must(err)
	p := cfg.Profiles[0]
	names := []string{"PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
		"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder"}
	p.Plugins = &config.Plugins{}
	for _, n := range names {
		p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, config.Plugin{Name: n, Weight: weights[n]})
	}
	return &p
}

func main() {
	metrics.Register()
	raw, err := os.ReadFile(os.Args[1])
	must(err)
	var file File
	must(json.Unmarshal(raw, &file))
	for _, c := range file.Cases {
		run(c)
	}
	out, err := json.Marshal(file)
	must(err)
	must(os.WriteFile(os.Args[2], out, 0o644))
}

// run decides the pods of one cluster one after the other, each on the nodes that the ones before it have filled.
func run(c *Case) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logger := klog.FromContext(ctx)
	store := cache.New(ctx, nil, false)
	for _, raw := range c.Nodes {
		var node v1.Node
		must(json.Unmarshal(raw, &node))
		store.AddNode(logger, &node)
	}
	snapshot := cache.NewEmptySnapshot()
	client := fake.NewSimpleClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	f, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile(),
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithClientSet(client))
	must(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for _, e := range c.Pods {
		var pod v1.Pod
		must(json.Unmarshal(e.Pod, &pod))
		if pod.Namespace == "" {
			pod.Namespace = "default"
		}
		pod.UID = types.UID("uid-" + pod.Name)
		corev1defaults.SetObjectDefaults_Pod(&pod)
		must(store.UpdateSnapshot(logger, snapshot))
		decide(ctx, f, snapshot, &pod, e)
		if e.Node != nil {
			pod.Spec.NodeName = *e.Node
			must(store.AddPod(logger, &pod))
		}
	}
}

// decide does what schedulePod of schedule_one.go does, without sampling and extenders.
func decide(ctx context.Context, f framework.Framework, snapshot *cache.Snapshot, pod *v1.Pod, e *Entry) {
	e.Node, e.Scores = nil, map[string]map[string]int64{}
	state := framework.NewCycleState()
	all, err := snapshot.NodeInfos().List()
	must(err)
	pre, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if status.Code() == fwk.Error {
			panic(fmt.Sprintf("%s: %v", pod.Name, status))
		}
		return
	}
	var feasible []fwk.NodeInfo
	for _, info := range all {
		if !pre.AllNodes() && !pre.NodeNames.Has(info.Node().Name) {
			continue
		}
		s := f.RunFilterPlugins(ctx, state, pod, info)
		if s.Code() == fwk.Error {
			panic(s)
		}
		if s.IsSuccess() {
			feasible = append(feasible, info)
		}
	}
	if len(feasible) == 0 {
		return
	}
	if len(feasible) == 1 {
		name := feasible[0].Node().Name
		e.Node = &name
		return
	}
	if s := f.RunPreScorePlugins(ctx, state, pod, feasible); !s.IsSuccess() {
		panic(fmt.Sprintf("%s: %v", pod.Name, s))
	}
	scores, s := f.RunScorePlugins(ctx, state, pod, feasible)
	if !s.IsSuccess() {
		panic(s)
	}
	for _, n := range scores {
		row := map[string]int64{"total": n.TotalScore}
		for _, p := range n.Scores {
			row[p.Name] = p.Score
		}
		e.Scores[n.Name] = row
	}
	var h scoreHeap = scores
	heap.Init(&h)
	name := heap.Pop(&h).(fwk.NodePluginScores).Name
	e.Node = &name
}
