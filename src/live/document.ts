/**
 * The part of the DOM that the page uses (https://dom.spec.whatwg.org). Its own library of types would bring the
 * globals of a browser into every file of the package.
 */

/** `Element`, of HTML or SVG. */
export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  readonly style: { setProperty(name: string, value: string): void };
  readonly classList: { toggle(name: string, on: boolean): void };
  readonly childElementCount: number;
  readonly lastElementChild: PageElement | null;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  append(...children: (PageElement | string)[]): void;
  prepend(...children: (PageElement | string)[]): void;
  replaceChildren(...children: (PageElement | string)[]): void;
  insertBefore(child: PageElement, next: PageElement | null): void;
  remove(): void;
  addEventListener(type: string, listener: () => void): void;
  getComputedTextLength?(): number;
  readonly children: ArrayLike<PageElement>;
}

/** `Document`. */
export interface PageDocument {
  title: string;
  readonly hidden: boolean;
  getElementById(id: string): PageElement | null;
  createElementNS(namespace: string, tag: string): PageElement;
  addEventListener(type: string, listener: () => void): void;
}
