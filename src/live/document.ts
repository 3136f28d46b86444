/*
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
  readonly firstElementChild: PageElement | null;
  readonly lastElementChild: PageElement | null;
  readonly children: ArrayLike<PageElement>;
  /** Of a `template`. */
  readonly content: PageElement;
  querySelector(selector: string): PageElement | null;
  cloneNode(deep: boolean): PageElement;
  setAttribute(name: string, value: string | number): void;
  append(...children: (PageElement | string)[]): void;
  prepend(...children: (PageElement | string)[]): void;
  replaceChildren(...children: (PageElement | string)[]): void;
  insertBefore(child: PageElement, next: PageElement | null): void;
  remove(): void;
  addEventListener(type: string, listener: () => void): void;
  /** Of a `text` of SVG. */
  getComputedTextLength(): number;
}

/** `Document`. */
export interface PageDocument {
  title: string;
  readonly hidden: boolean;
  getElementById(id: string): PageElement | null;
  createElementNS(namespace: string, tag: string): PageElement;
  addEventListener(type: string, listener: () => void): void;
}
