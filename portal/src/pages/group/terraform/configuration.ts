import type { Group } from '@/api'

const REPLACED = /[^a-z0-9_]+/g
const TEMPLATE = /[$%](?=\{)/g
const DIGIT_FIRST = /^\d/

/** A configuration that takes over the group as it is: its plan changes nothing. */
export function configurationOf(group: Group, apiUrl: string): string {
  const label = labelOf(group.name)
  return `terraform {
  required_providers { quorate = { source = "quorate/quorate" } }
}

provider "quorate" {
  endpoint = ${quoted(apiUrl)}
  owner    = "quorate-\${terraform.workspace}"
}

import {
  to = quorate_group.${label}
  id = ${quoted(`${group.project_id}/${group.id}`)}
}

resource "quorate_group" "${label}" {
${aligned(argumentsOf(group))}
}`
}

/** A resource's label: letters, digits and underscores. */
export function labelOf(name: string): string {
  const label = name.toLowerCase().replace(REPLACED, '_')
  return DIGIT_FIRST.test(label) || label === '_' ? `group_${label}` : label
}

function argumentsOf(group: Group): [string, string][] {
  const { sla } = group
  const found: [string, string | number | boolean | null | undefined][] = [
    ['project_id', group.project_id],
    ['name', group.name],
    ['durability', sla.durability],
    ['replication_degree', sla.replication_degree],
    ['min_replicas', sla.min_replicas],
    ['request_size_bytes', sla.request_size_bytes],
    ['rate_per_s', sla.rate_per_s],
    ['read_rate_per_s', sla.read_rate_per_s || null],
    ['retention_bytes', sla.retention_bytes],
    ['retention_age_s', sla.retention_age_s],
    ['latency', sla.latency === 'low' ? 'low' : null],
    ['region', sla.region],
    ['deletion_protection', group.deletion_protection === true ? null : false],
    ['partitions', (group.partitions ?? 1) > 1 ? group.partitions : null],
  ]
  return found.flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, typeof value === 'string' ? quoted(value) : String(value)]],
  )
}

function aligned(lines: [string, string][]): string {
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `  ${name.padEnd(width)} = ${value}`).join('\n')
}

/** A string of HCL. Templates in it are none. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(TEMPLATE, (sign) => sign + sign)
}
