import { useMutation } from '@tanstack/react-query'
import { FileDown, Sheet } from 'lucide-react'
import { api, type Invoice, type InvoiceFile } from '@/api'
import { Button } from '@/ui/Button'
import { ProblemNotice } from '@/ui/Notice'
import { saveFile } from '@/ui/saveFile'

/** The invoice as files: the PDF that accountants keep, and its lines for spreadsheets. */
export function Downloads({ invoice }: { invoice: Invoice }) {
  const download = useMutation({
    mutationFn: async (kind: InvoiceFile) => saveFile(await api.invoiceFile(invoice.id, kind), fileName(invoice, kind)),
  })
  const busy = (kind: InvoiceFile) => download.isPending && download.variables === kind
  return (
    <div className="flex flex-wrap items-center gap-2 print:hidden">
      <Button
        variant="secondary"
        size="small"
        busy={busy('pdf')}
        icon={<FileDown aria-hidden className="size-4" />}
        onClick={() => download.mutate('pdf')}
      >
        {invoice.status === 'open' ? 'Download draft PDF' : 'Download PDF'}
      </Button>
      <Button
        variant="secondary"
        size="small"
        busy={busy('csv')}
        aria-label="Download the lines as CSV"
        icon={<Sheet aria-hidden className="size-4" />}
        onClick={() => download.mutate('csv')}
      >
        CSV
      </Button>
      {download.error && (
        <div className="mt-1 w-full">
          <ProblemNotice error={download.error} />
        </div>
      )}
    </div>
  )
}

function fileName(invoice: Invoice, kind: InvoiceFile): string {
  return `${invoice.number ?? `draft-${invoice.period_start.slice(0, 7)}`}.${kind}`
}
