// The peer that runs a placed workload in SimGrid 3.32 (S4U, host energy plugin) and prints one JSON line.
//
// Owns: reading the workload format of README.md, and driving SimGrid the fastest way we found that keeps its
// results. It must not compute speeds, energies or ends itself: all of them are SimGrid's.
//
// Settings (README.md has the measurements):
// - cpu/optim is left at Lazy, the default: it gives the energies of Full, much faster.
// - contexts/factory is left at raw, the default: no other was clearly faster. Small stacks helped at 1,000 drivers.
// - The network costs nothing: an empty zone, no link and no communication, so no network model is chosen.

#include <simgrid/plugins/energy.h>
#include <simgrid/s4u.hpp>
#include <simgrid/simix.hpp>
#include <xbt/config.hpp>
#include <xbt/log.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;
using Clock = std::chrono::steady_clock;

// One core does this much a second; only the ratio of work to it matters.
constexpr double FLOPS_PER_CORE_S = 1e9;
constexpr int STACK_KIB = 64;

struct HostLine {
  std::string name;
  int cores = 0;
  std::string idle_w, epsilon_w, all_cores_w; // passed on as text: SimGrid parses them itself
};

struct Task {
  double start_s = 0;
  double work_core_s = 0;
};

struct Workload {
  std::vector<HostLine> hosts;
  std::vector<std::vector<Task>> tasks_of_host; // each in order of start
  std::size_t tasks = 0;
};

[[noreturn]] static void fail(const std::string& reason)
{
  std::cerr << "simgrid_peer: " << reason << "\n";
  std::exit(2);
}

static std::size_t read_count(std::istream& in, const char* section)
{
  std::string word;
  std::size_t count = 0;
  if (!(in >> word >> count) || word != section)
    fail(std::string("expected '") + section + " COUNT'");
  return count;
}

static Workload read_workload(const char* path)
{
  std::ifstream in(path);
  std::string magic;
  if (!std::getline(in, magic) || magic != "wattloom-peers 1")
    fail(std::string(path) + " is not a 'wattloom-peers 1' file");
  Workload load;
  load.hosts.resize(read_count(in, "hosts"));
  for (HostLine& host : load.hosts)
    in >> host.name >> host.cores >> host.idle_w >> host.epsilon_w >> host.all_cores_w;
  load.tasks_of_host.resize(load.hosts.size());
  load.tasks = read_count(in, "tasks");
  for (std::size_t i = 0; i < load.tasks; i++) {
    Task task;
    std::size_t host = 0;
    if (!(in >> task.start_s >> host >> task.work_core_s) || host >= load.hosts.size())
      fail("bad task line " + std::to_string(i));
    load.tasks_of_host[host].push_back(task);
  }
  return load;
}

static std::vector<sg4::Host*> build_platform(const std::vector<HostLine>& lines)
{
  auto* zone = sg4::create_empty_zone("root");
  std::vector<sg4::Host*> hosts;
  for (const HostLine& line : lines) {
    sg4::Host* host = zone->create_host(line.name, FLOPS_PER_CORE_S);
    host->set_core_count(line.cores);
    host->set_property("wattage_per_state", line.idle_w + ":" + line.epsilon_w + ":" + line.all_cores_w);
    hosts.push_back(host->seal());
  }
  zone->seal();
  return hosts;
}

static bool has_ended(const sg4::Exec& exec)
{
  return exec.get_finish_time() >= 0;
}

// Starts a host's tasks at their times, then stays until the last has ended (a leaving actor cancels its execs).
//
// One driver per host, not one for all: SimGrid keeps an actor's running execs in a list that it scans at each end,
// so a single driver (or maestro, by timers) pays for every running task in the cluster at each completion.
static void drive(sg4::Host* host, const std::vector<Task>& tasks)
{
  std::deque<sg4::ExecPtr> execs;
  for (const Task& task : tasks) {
    if (task.start_s > sg4::Engine::get_clock())
      sg4::this_actor::sleep_until(task.start_s);
    sg4::ExecPtr exec = sg4::Exec::init();
    // One simcall around the three that these calls would otherwise make, each a switch to maestro and back.
    simgrid::kernel::actor::simcall_answered([&] {
      exec->set_flops_amount(task.work_core_s * FLOPS_PER_CORE_S);
      exec->set_host(host);
      exec->start();
    });
    execs.push_back(std::move(exec));
    // Measured: faster at 100 hosts than keeping every exec to the end.
    while (!execs.empty() && has_ended(*execs.front()))
      execs.pop_front();
  }
  for (const sg4::ExecPtr& exec : execs)
    if (!has_ended(*exec)) // waiting for one that has would cost a simcall for nothing
      exec->wait();
}

static double seconds_since(Clock::time_point start)
{
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static void print_result(const std::vector<sg4::Host*>& hosts, std::size_t tasks, double setup_s, double wall_s,
                         bool per_host)
{
  double total_j = 0;
  std::string list;
  char number[40];
  for (const sg4::Host* host : hosts) {
    const double joules = sg_host_get_consumed_energy(host);
    total_j += joules;
    std::snprintf(number, sizeof number, "%s%.12g", list.empty() ? "" : ", ", joules);
    list += number;
  }
  std::printf("{\"peer\": \"simgrid\", \"makespan_s\": %.12g, \"energy_j\": %.12g, \"tasks\": %zu, "
              "\"wall_s\": %.6f, \"setup_s\": %.6f",
              sg4::Engine::get_clock(), total_j, tasks, wall_s, setup_s);
  if (per_host)
    std::printf(", \"energy_j_per_host\": [%s]", list.c_str());
  std::puts("}");
}

int main(int argc, char* argv[])
{
  xbt_log_control_set("root.thres:critical"); // the energy plugin writes a line per host at the end
  sg4::Engine engine(&argc, argv);            // takes the --cfg and --log flags out of argv
  simgrid::config::set_default<int>("contexts/stack-size", STACK_KIB); // a default: --cfg still wins
  if (argc < 2)
    fail("usage: simgrid_peer WORKLOAD [--per-host] [--cfg=...] [--log=...]");
  const bool per_host = argc > 2 && std::strcmp(argv[2], "--per-host") == 0;
  const Workload load = read_workload(argv[1]);

  const auto setup_start = Clock::now();
  sg_host_energy_plugin_init(); // before the hosts: it attaches to each as it is created
  const std::vector<sg4::Host*> hosts = build_platform(load.hosts);
  const double setup_s = seconds_since(setup_start);

  const auto start = Clock::now();
  for (std::size_t i = 0; i < hosts.size(); i++)
    if (const auto& tasks = load.tasks_of_host[i]; !tasks.empty())
      sg4::Actor::create("driver", hosts[i], [&tasks, host = hosts[i]] { drive(host, tasks); });
  engine.run();
  const double wall_s = seconds_since(start);

  print_result(hosts, load.tasks, setup_s, wall_s, per_host);
  return 0;
}
