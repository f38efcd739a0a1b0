"""The optimum of a placement, from OR-Tools' CP-SAT: which applicants, and where, to use most."""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from quorate_papers.instances import Instance, vectors_of

STEPS = 1_000_000  # amounts are whole shares of a server's capacity in so many steps
WORKERS = 2


@dataclass(frozen=True)
class Optimum:
    """As shares of all servers' amount of the resource. `bound`: no placement has more."""

    found: float
    bound: float

    @property
    def proven(self) -> bool:
        return self.bound - self.found < 1e-6


def optimum(instance: Instance, resource: int, seconds: float) -> Optimum:
    """Demands are rounded down: the bound holds for the true ones too."""
    model = cp_model.CpModel()
    servers = instance["servers"]
    loads: list[list[list[object]]] = [[[] for _ in range(3)] for _ in servers]
    worth = []
    for wanted in vectors_of(instance["applicants"]):
        admitted = model.new_bool_var("")
        at = [[model.new_bool_var("") for _ in servers] for _ in wanted]
        for replica in at:
            model.add(sum(replica) == admitted)
        for s, server in enumerate(servers):
            model.add_at_most_one(replica[s] for replica in at)
            for vector, replica in zip(wanted, at, strict=True):
                for i in range(3):
                    steps = int(vector[i] / server["capacity"][i] * STEPS)
                    if steps:
                        loads[s][i].append(steps * replica[s])
        total = sum(int(vector[resource] / servers[0]["capacity"][resource] * STEPS) for vector in wanted)
        worth.append(total * admitted)
    for load in loads:
        for one in load:
            if one:
                model.add(sum(one) <= STEPS)  # type: ignore[arg-type]
    model.maximize(sum(worth))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = WORKERS
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    whole = STEPS * len(servers)
    found = solver.objective_value / whole if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else 0.0
    return Optimum(found, min(1.0, solver.best_objective_bound / whole))
