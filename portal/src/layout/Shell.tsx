import { Dialog } from '@base-ui/react/dialog'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { Menu as MenuIcon, X } from 'lucide-react'
import { useState, type ReactNode } from 'react'
import { IconButton } from '@/ui/Button'
import { Logo } from '@/ui/Logo'
import { CommandPalette } from './CommandPalette'
import { ConfirmPerson } from './ConfirmPerson'
import { RouteAnnouncer } from './RouteAnnouncer'
import { Sidebar } from './Sidebar'
import { StandingNotice } from './StandingNotice'
import { VerifyNotice } from './VerifyNotice'
import { ViewNotice } from './ViewNotice'

/** The frame of every signed-in page: navigation at the side, or in a drawer on narrow screens. */
export function Shell({ children }: { children?: ReactNode }) {
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15.5rem_1fr]">
      <a
        href="#content"
        className="sr-only z-50 rounded-lg bg-accent px-4 py-2 text-accent-ink focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
      >
        Skip to content
      </a>
      <aside className="sticky top-0 hidden h-dvh border-r border-line lg:block">
        <Sidebar />
      </aside>
      <TopBar />
      <main
        id="content"
        tabIndex={-1}
        className="mx-auto w-full max-w-6xl min-w-0 px-4 pt-6 pb-16 outline-none sm:px-8 lg:pt-10"
      >
        <ViewNotice />
        <StandingNotice />
        <VerifyNotice />
        {children ?? <Outlet />}
      </main>
      <ConfirmPerson />
      <CommandPalette />
      <RouteAnnouncer />
    </div>
  )
}

function TopBar() {
  const [open, setOpen] = useState(false)
  // The drawer belongs to one page: following a link closes it.
  const path = useRouterState({ select: (state) => state.location.pathname })
  const [openedOn, setOpenedOn] = useState(path)
  const shown = open && openedOn === path
  return (
    <header className="sticky top-0 z-30 flex h-14 items-center justify-between border-b border-line bg-paper px-4 sm:px-8 lg:hidden">
      <Link to="/" aria-label="Quorate, home" className="rounded">
        <Logo />
      </Link>
      <Dialog.Root
        open={shown}
        onOpenChange={(next) => {
          setOpen(next)
          setOpenedOn(path)
        }}
      >
        <Dialog.Trigger render={<IconButton label="Open navigation" className="-mr-2 size-10" />}>
          <MenuIcon aria-hidden className="size-5" />
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Backdrop className="fixed inset-0 z-40 bg-black/40" />
          <Dialog.Popup className="fixed inset-y-0 left-0 z-50 w-72 max-w-[85vw] border-r border-line bg-paper shadow-high transition-transform duration-150 data-ending-style:-translate-x-full data-starting-style:-translate-x-full">
            <Dialog.Title className="sr-only">Navigation</Dialog.Title>
            <Dialog.Close render={<IconButton label="Close navigation" className="absolute top-3.5 right-3" />}>
              <X aria-hidden className="size-4" />
            </Dialog.Close>
            <Sidebar />
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
    </header>
  )
}
