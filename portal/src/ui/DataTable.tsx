import {
  flexRender,
  getCoreRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type SortingState,
} from '@tanstack/react-table'
import { ArrowDown, ArrowUp } from 'lucide-react'

declare module '@tanstack/react-table' {
  // oxlint-disable-next-line no-unused-vars
  interface ColumnMeta<TData, TValue> {
    align?: 'right'
    /** Left out on narrow screens. */
    wide?: boolean
  }
}

interface Props<T> {
  /** The table's name for screen readers. */
  caption: string
  // Columns have different value types. The table library types them so, too.
  // oxlint-disable-next-line typescript/no-explicit-any
  columns: ColumnDef<T, any>[]
  rows: T[]
  rowId: (row: T) => string
  sorting?: SortingState
  onSortingChange?: (sorting: SortingState) => void
}

const UNSORTED: SortingState = []

/** A table in a card. The caller owns the sorting, so that it can be in the URL. */
export function DataTable<T>({ caption, columns, rows, rowId, sorting = UNSORTED, onSortingChange }: Props<T>) {
  const table = useReactTable({
    data: rows,
    columns,
    getRowId: rowId,
    state: { sorting },
    enableSorting: onSortingChange !== undefined,
    onSortingChange: (update) => onSortingChange?.(typeof update === 'function' ? update(sorting) : update),
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  })
  return (
    <div className="relative overflow-x-auto rounded-2xl border border-line bg-surface">
      <table className="w-full text-sm">
        <caption className="sr-only">{caption}</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} className="border-b border-line text-left text-[13px] text-ink-3">
              {group.headers.map((header) => (
                <th
                  key={header.id}
                  scope="col"
                  aria-sort={ARIA_SORT[String(header.column.getIsSorted())]}
                  className={`px-4 py-2.5 font-normal first:pl-5 last:pr-5 ${place(header.column.columnDef.meta)}`}
                >
                  {header.column.getCanSort() ? (
                    <button
                      type="button"
                      onClick={header.column.getToggleSortingHandler()}
                      className="inline-flex items-center gap-1 rounded hover:text-ink"
                    >
                      {flexRender(header.column.columnDef.header, header.getContext())}
                      {header.column.getIsSorted() === 'asc' && <ArrowUp aria-hidden className="size-3" />}
                      {header.column.getIsSorted() === 'desc' && <ArrowDown aria-hidden className="size-3" />}
                    </button>
                  ) : (
                    flexRender(header.column.columnDef.header, header.getContext())
                  )}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody className="divide-y divide-line">
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id} className="relative transition-colors has-[a.row-link]:hover:bg-hover">
              {row.getVisibleCells().map((cell) => (
                <td
                  key={cell.id}
                  className={`px-4 py-3.5 align-middle first:pl-5 last:pr-5 ${place(cell.column.columnDef.meta)}`}
                >
                  {flexRender(cell.column.columnDef.cell, cell.getContext())}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const ARIA_SORT: Record<string, 'ascending' | 'descending'> = { asc: 'ascending', desc: 'descending' }

function place(meta: { align?: 'right'; wide?: boolean } | undefined): string {
  return `${meta?.align === 'right' ? 'text-right' : ''} ${meta?.wide ? 'hidden md:table-cell' : ''}`
}
