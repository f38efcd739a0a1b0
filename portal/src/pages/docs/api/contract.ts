/** The parts of an OpenAPI document that the reference shows. Pure. */
export interface Schema {
  $ref?: string
  type?: string
  format?: string
  description?: string
  enum?: (string | number)[]
  const?: string | number
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  default?: unknown
}
interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
}
interface Content {
  content?: Record<string, { schema?: Schema }>
}
export interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: Content
  responses?: Record<string, Content & { description?: string }>
  security?: Record<string, unknown>[]
}
export interface Contract {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

export interface Call {
  method: string
  path: string
  operation: Operation
}
export interface Tag {
  name: string
  calls: Call[]
}

/** Calls of operators and probers, who have no account in the portal. */
const NOT_FOR_CUSTOMERS = new Set(['operator', 'prober'])

/** Calls by their first tag, in the document's order; `search` is in the path, the method or the description. */
export function tagsOf(contract: Contract, search: string): Tag[] {
  const wanted = search.trim().toLowerCase()
  const tags = new Map<string, Call[]>()
  for (const [path, methods] of Object.entries(contract.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const name = operation.tags?.[0] ?? 'other'
      const text = `${method} ${path} ${operation.description ?? ''}`.toLowerCase()
      if (NOT_FOR_CUSTOMERS.has(name) || !text.includes(wanted)) continue
      tags.set(name, [...(tags.get(name) ?? []), { method: method.toUpperCase(), path, operation }])
    }
  return [...tags].map(([name, calls]) => ({ name, calls }))
}

export interface FieldRow {
  name: string
  type: string
  required: boolean
  description: string
}

/** The fields of an object, as rows; none of anything else. */
export function fieldsOf(contract: Contract, schema: Schema | undefined): FieldRow[] {
  const resolved = resolve(contract, schema)
  const required = new Set(resolved?.required ?? [])
  return Object.entries(resolved?.properties ?? {}).map(([name, field]) => ({
    name,
    type: typeOf(field),
    required: required.has(name),
    description: field.description ?? '',
  }))
}

/** Follows a reference, and an array's items. */
export function resolve(contract: Contract, schema: Schema | undefined): Schema | undefined {
  if (schema?.$ref) return resolve(contract, contract.components.schemas[nameOf(schema.$ref)])
  if (schema?.type === 'array') return resolve(contract, schema.items)
  return schema
}

/** In a few words: "string (date-time) or null", "Price[]". */
export function typeOf(schema: Schema): string {
  if (schema.$ref) return nameOf(schema.$ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ')
  if (schema.type === 'array') return `${schema.items ? typeOf(schema.items) : 'any'}[]`
  if (schema.type === undefined) return 'any'
  return schema.format ? `${schema.type} (${schema.format})` : schema.type
}

export function bodyOf(content: Content | undefined): { kind: string; schema: Schema | undefined } | null {
  const [first] = Object.entries(content?.content ?? {})
  return first ? { kind: first[0], schema: first[1].schema } : null
}

/** The answer of success: its status and what it says. */
export function answerOf(operation: Operation): { status: string; content: Content; description: string } | null {
  const found = Object.entries(operation.responses ?? {}).find(([status]) => status.startsWith('2'))
  return found ? { status: found[0], content: found[1], description: found[1].description ?? '' } : null
}

/** How to call it, with names in the place of values. */
export function curlOf({ method, path, operation }: Call, origin: string): string {
  const isPublic = operation.security?.length === 0
  const body = bodyOf(operation.requestBody)
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}"${origin}${path.replaceAll(/\{(\w+)\}/g, '$$$1')}"`,
    ...(isPublic ? [] : ['-H "Authorization: Bearer $QUORATE_API_KEY"']),
    ...(body?.kind === 'application/json' ? [`-H "Content-Type: application/json" -d '{…}'`] : []),
  ].join(' \\\n  ')
}

export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}
