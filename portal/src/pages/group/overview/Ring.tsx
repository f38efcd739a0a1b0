import type { Placement, Replica } from '@/api'
import { word } from '@/format/words'
import { arc, CENTRE, NODE_R, nodeAt, type Point, viewBox } from './ringGeometry'

/** The group's replicas in chain order, clockwise from the head at the top. Learners are outside. */
export function Ring({ placement, flowing }: { placement: Placement; flowing: boolean }) {
  const { replicas, learners, epoch } = placement
  const total = replicas.length
  return (
    <svg
      viewBox={viewBox(learners.length > 0)}
      role="img"
      aria-label={describe(placement)}
      className="mx-auto block w-full max-w-[19rem]"
    >
      <defs>
        <Arrow id="ring-arrow" colour="var(--accent)" />
        <Arrow id="ring-arrow-back" colour="var(--ink-3)" />
      </defs>
      {total > 1 &&
        replicas.map((replica, index) => (
          <Link
            key={replica.server_id}
            index={index}
            total={total}
            broken={!replica.alive || !replicas[(index + 1) % total]?.alive}
          />
        ))}
      {flowing && total > 1 && replicas.every((replica) => replica.alive) && <Flow total={total} />}
      {learners.map((learner, index) => (
        <Learner
          key={learner.server_id}
          learner={learner}
          at={nodeAt(total - 1 + index * 0.45, total, 1.68)}
          from={nodeAt(total - 1, total)}
        />
      ))}
      {replicas.map((replica, index) => (
        <Node key={replica.server_id} replica={replica} at={nodeAt(index, total)} />
      ))}
      <text x={CENTRE} y={CENTRE - 8} textAnchor="middle" className="fill-ink-3 text-[12px]">
        Epoch
      </text>
      <text x={CENTRE} y={CENTRE + 18} textAnchor="middle" className="nums fill-ink text-[26px] font-semibold">
        {epoch}
      </text>
    </svg>
  )
}

function Arrow({ id, colour }: { id: string; colour: string }) {
  return (
    <marker id={id} viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">
      <path
        d="M1 1 L6.5 4 L1 7"
        fill="none"
        stroke={colour}
        strokeWidth="1.4"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </marker>
  )
}

function Link({ index, total, broken }: { index: number; total: number; broken: boolean }) {
  const closing = index === total - 1
  return (
    <path
      d={arc(index, total)}
      fill="none"
      stroke={broken ? 'var(--danger)' : closing ? 'var(--ink-3)' : 'var(--accent)'}
      strokeOpacity={broken ? 0.5 : 1}
      strokeWidth="1.75"
      strokeDasharray={closing || broken ? '4 5' : undefined}
      markerEnd={closing ? 'url(#ring-arrow-back)' : 'url(#ring-arrow)'}
    />
  )
}

/** One append on its ring pass. Shown only while there are appends. */
function Flow({ total }: { total: number }) {
  const path = Array.from({ length: total }, (_, index) => arc(index, total, 0)).join(' ')
  return (
    <circle r="3.5" fill="var(--accent)" className="motion-reduce:hidden">
      <animateMotion dur={`${total * 0.9}s`} repeatCount="indefinite" path={path} calcMode="linear" />
    </circle>
  )
}

function Node({ replica, at }: { replica: Replica; at: Point }) {
  const leads = replica.role === 'head' || replica.role === 'sole'
  const edge = replica.alive ? 'var(--accent)' : 'var(--danger)'
  return (
    <g>
      <circle
        cx={at.x}
        cy={at.y}
        r={NODE_R}
        fill={leads && replica.alive ? 'var(--accent)' : 'var(--surface)'}
        stroke={edge}
        strokeWidth="2"
        strokeDasharray={replica.alive ? undefined : '4 4'}
      />
      <text
        x={at.x}
        y={at.y - 1}
        textAnchor="middle"
        className={`text-[13px] font-semibold ${leads && replica.alive ? 'fill-accent-ink' : replica.alive ? 'fill-ink' : 'fill-danger-text'}`}
      >
        {short(replica.server_name)}
      </text>
      <text
        x={at.x}
        y={at.y + 12}
        textAnchor="middle"
        className={`text-[10px] ${leads && replica.alive ? 'fill-accent-ink' : replica.alive ? 'fill-ink-2' : 'fill-danger-text'}`}
      >
        {replica.alive ? word(replica.role).replace(' replica', '') : 'Dead'}
      </text>
    </g>
  )
}

function Learner({ learner, at, from }: { learner: Replica; at: Point; from: Point }) {
  return (
    <g>
      <line x1={from.x} y1={from.y} x2={at.x} y2={at.y} stroke="var(--info)" strokeWidth="1.5" strokeDasharray="2 4" />
      <circle
        cx={at.x}
        cy={at.y}
        r={NODE_R - 6}
        fill="var(--surface)"
        stroke="var(--info)"
        strokeWidth="1.75"
        strokeDasharray="3 3"
      />
      <text x={at.x} y={at.y + 4} textAnchor="middle" className="fill-info-text text-[12px] font-semibold">
        {short(learner.server_name)}
      </text>
    </g>
  )
}

/** A node has room for six letters. The table beside it has the whole name. */
function short(name: string): string {
  return name.length <= 6 ? name : `${name.slice(0, 2)}…${name.slice(-3)}`
}

function describe({ replicas, learners, epoch }: Placement): string {
  const parts = [...replicas, ...learners].map(
    (each) => `${each.server_name} ${word(each.role).toLowerCase()}, ${each.alive ? 'alive' : 'dead'}`,
  )
  return `Ring of epoch ${epoch}: ${parts.join('; ')}.`
}
